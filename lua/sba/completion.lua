-- SPDX-License-Identifier: Apache-2.0
-- Completions of the command line for bash, fish and zsh, made from the options that the command line takes.

local completion = {}

--- What may follow an option: its values as words, or nil.
local function values_of(option)
  return option.values and table.concat(option.values, " ")
end

---@param options cli.option[]
---@return string script
function completion.bash(options)
  local names, cases = {}, {}
  for i, option in ipairs(options) do
    names[i] = "--" .. option.name
    local values = values_of(option)
    if values then cases[#cases + 1] = ('        --%s) COMPREPLY=($(compgen -W "%s" -- "$2")); return ;;\n'):format(option.name, values) end
    if option.takes_file then
      cases[#cases + 1] = ('        --%s) COMPREPLY=($(compgen -f -- "$2")); return ;;\n'):format(option.name)
    end
  end
  return ([[
# bash completion of cynode-sba
_cynode_sba() {
    case $3 in
%s    esac
    COMPREPLY=($(compgen -W "%s" -- "$2"))
}
complete -o filenames -o default -F _cynode_sba cynode-sba
]]):format(table.concat(cases), table.concat(names, " "))
end

---@param options cli.option[]
---@return string script
function completion.fish(options)
  local lines = { "# fish completion of cynode-sba\n", "complete -c cynode-sba -F\n" }
  for _, option in ipairs(options) do
    local values = values_of(option)
    local what = values and (" -x -a '%s'"):format(values) or option.takes_file and " -r -F" or option.kind == "value" and " -x" or ""
    lines[#lines + 1] = ("complete -c cynode-sba -l %s%s -d '%s'\n"):format(option.name, what, (option.summary:gsub("'", "\\'")))
  end
  return table.concat(lines)
end

---@param options cli.option[]
---@return string script
function completion.zsh(options)
  local lines = {}
  for i, option in ipairs(options) do
    local values = values_of(option)
    local what = values and (":value:(%s)"):format(values) or option.takes_file and ":file:_files"
      or option.kind == "value" and ":value:" or ""
    local summary = option.summary:gsub("'", "'\\''"):gsub("[%[%]:]", "\\%0")
    lines[i] = ("    '%s--%s[%s]%s' \\\n"):format(option.is_list and "*" or "", option.name, summary, what)
  end
  return ([=[
#compdef cynode-sba
_cynode-sba() {
  _arguments \
%s    '*:file:_files'
}
# A file in $fpath is the function that completes; what is sourced says which that is.
if [[ $funcstack[1] == _cynode-sba ]]; then
  _cynode-sba "$@"
else
  (( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
  compdef _cynode-sba cynode-sba
fi
]=]):format(table.concat(lines))
end

return completion

-- SPDX-License-Identifier: Apache-2.0
-- Why a valid step will fail when it runs, for --validate.

local json = require "sba.util.json"
local words = require "sba.util.words"

local PATHS <const> = { "path", "save_to" } -- arguments that name a file of the workspace

local function leaves(path)
  for part in path:gmatch("[^/]+") do
    if part ~= "." then return part == ".." and path:sub(1, 1) ~= "/" end
  end
end

local function asks_nobody(step, inference)
  if step.type ~= "ask_model" then return nil end
  if not json.is_object(inference) then return "the job names no models: inference.allowed_models is missing" end
  local model, allowed = step.arguments.model, inference.allowed_models
  if model and json.is_array(allowed) and not words.has(allowed, model) then
    return ("the model %s is not in inference.allowed_models"):format(words.quoted(model)), "model"
  end
end

---@param step { type: string, arguments: table } its arguments are valid
---@param kind sba.step
---@param inference any the job's
---@return string? message, string? argument
return function(step, kind, inference)
  for _, name in ipairs(PATHS) do
    local path = step.arguments[name]
    if type(path) == "string" and leaves(path) then return "the path leaves the workspace", name end
  end
  local message, argument = asks_nobody(step, inference)
  if message or not kind.lint then return message, argument end
  return kind.lint(step.arguments)
end

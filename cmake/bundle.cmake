# Bundled Lua: every file below lua/ (and SBA_EXTRA_LUA), compiled to bytecode with its line numbers and put into the
# binary by name, so that a traceback still says lua/sba/..., and a start costs no parsing. A syntax error in a file, or a
# module name used twice, is a build error that names the file; a mistake in a step type is one too (check_steps.lua).
find_program(LUA_INTERPRETER lua5.4 REQUIRED)

set(SBA_BUNDLE_SOURCE ${CMAKE_BINARY_DIR}/bundled_modules.c)
file(GLOB_RECURSE lua_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/lua/sba/*.lua ${CMAKE_SOURCE_DIR}/lua/sba/*.css)
set(lua_roots ${CMAKE_SOURCE_DIR}/lua)
if(SBA_EXTRA_LUA)
  if(NOT IS_DIRECTORY ${SBA_EXTRA_LUA})
    message(FATAL_ERROR "SBA_EXTRA_LUA: ${SBA_EXTRA_LUA} is not a directory.")
  endif()
  file(GLOB_RECURSE extra_lua_files CONFIGURE_DEPENDS ${SBA_EXTRA_LUA}/*.lua)
  if(NOT extra_lua_files)
    message(FATAL_ERROR "SBA_EXTRA_LUA: ${SBA_EXTRA_LUA} holds no Lua file. A step type is sba/steps/NAME.lua in it.")
  endif()
  list(APPEND lua_roots ${SBA_EXTRA_LUA})
endif()
# In a file: all these names are 8 KiB, and a build that fails shows the command.
set(bundle_list ${CMAKE_BINARY_DIR}/bundled_modules.list)
list(JOIN lua_roots "\n" roots)
list(JOIN lua_files "\n" files)
set(extra_and_end ${extra_lua_files} --)
list(JOIN extra_and_end "\n" extra_files)
list(JOIN sba_library_versions "\n" versions)
file(CONFIGURE OUTPUT ${bundle_list} @ONLY
  CONTENT "@versions@\n--\n@roots@\n--\n@files@\n@extra_files@\n@CMAKE_SOURCE_DIR@/lua/types/native.lua\n")
add_custom_command(OUTPUT ${SBA_BUNDLE_SOURCE}
  COMMAND ${LUA_INTERPRETER} ${CMAKE_SOURCE_DIR}/cmake/bundle.lua ${SBA_BUNDLE_SOURCE} ${bundle_list}
  DEPENDS ${bundle_list} ${CMAKE_SOURCE_DIR}/cmake/bundle.lua ${CMAKE_SOURCE_DIR}/lua/types/native.lua ${lua_files} ${extra_lua_files}
  COMMENT "Bundling the Lua modules" VERBATIM USES_TERMINAL) # what is wrong comes before the command that failed

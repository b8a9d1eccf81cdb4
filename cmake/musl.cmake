# Toolchain of the release build: Debian's gcc, with the specs that vendor/build writes for musl. musl-arm64.cmake names
# another architecture and its compiler.
if(NOT DEFINED arch)
  set(arch)
  set(CMAKE_SYSTEM_PROCESSOR ${CMAKE_HOST_SYSTEM_PROCESSOR})
  set(CMAKE_C_COMPILER gcc)
endif()
execute_process(COMMAND ${CMAKE_CURRENT_LIST_DIR}/../vendor/build ${arch} --prefix
  OUTPUT_VARIABLE SBA_VENDOR_PREFIX OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
if(NOT EXISTS ${SBA_VENDOR_PREFIX}/versions)
  string(JOIN " " command vendor/build ${arch})
  message(FATAL_ERROR "The static libraries are not built yet: run ${command} first (about three minutes, once).")
endif()
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY) # nothing links before libraries.cmake names the libraries
add_compile_options(-specs=${SBA_VENDOR_PREFIX}/static-pie.specs)
add_link_options(-specs=${SBA_VENDOR_PREFIX}/static-pie.specs)

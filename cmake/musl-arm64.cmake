# Toolchain of the release build for aarch64: Debian's cross compiler, with the musl that vendor/build made for it.
execute_process(COMMAND ${CMAKE_CURRENT_LIST_DIR}/../vendor/build --arch arm64 --prefix
  OUTPUT_VARIABLE SBA_VENDOR_PREFIX OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
if(NOT EXISTS ${SBA_VENDOR_PREFIX}/versions)
  message(FATAL_ERROR "The static libraries for aarch64 are not built yet: run vendor/build --arch arm64 (about two minutes, once).")
endif()
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY) # it has no C library until the specs name one
# Not a compiler of the prefix: when that moves, CMake would begin the folder anew and lose its way.
add_compile_options(-specs=${SBA_VENDOR_PREFIX}/musl/lib/musl-gcc.specs)
add_link_options(-specs=${SBA_VENDOR_PREFIX}/musl/lib/musl-gcc.specs)

# Toolchain of the release build for aarch64: Debian's cross compiler, with the musl that vendor/build made for it.
set(arch --arch arm64)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
include(${CMAKE_CURRENT_LIST_DIR}/musl.cmake)

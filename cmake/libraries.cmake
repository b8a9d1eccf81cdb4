# The libraries: Debian's shared ones in the dev build, those of vendor/ in the release.
#   sba_libraries      what core/ needs
#   sba_lua_libraries  Lua and its C modules, for host and bind only
add_library(sba_libraries INTERFACE)
add_library(sba_lua_libraries INTERFACE)

# A change below vendor/ configures anew.
file(GLOB_RECURSE vendored CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/vendor/*)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${vendored})

if(SBA_STATIC)
  target_include_directories(sba_libraries SYSTEM INTERFACE
    ${SBA_VENDOR_PREFIX}/include ${SBA_VENDOR_PREFIX}/kernel-include)
  set(lib ${SBA_VENDOR_PREFIX}/lib)
  target_link_libraries(sba_libraries INTERFACE ${lib}/libpcre2-8.a ${lib}/libcurl.a ${lib}/libcares.a
    ${lib}/libssl.a ${lib}/libcrypto.a ${lib}/libedit.a ${lib}/libtinfo.a)
  target_link_libraries(sba_lua_libraries INTERFACE ${lib}/libcjson.a ${lib}/liblpeg.a ${lib}/liblua.a)
  file(STRINGS ${SBA_VENDOR_PREFIX}/versions sba_library_versions)
  if(EXISTS ${SBA_VENDOR_PREFIX}/older)
    file(STRINGS ${SBA_VENDOR_PREFIX}/older older)
    message(WARNING "Not for shipping: ${older}")
  endif()
  # No unwind tables: nothing here unwinds.
  add_compile_options(-fPIE -fno-asynchronous-unwind-tables -fno-unwind-tables -fstack-protector-strong)
  add_link_options(-s -Wl,--gc-sections -Wl,-z,relro,-z,now,-z,separate-code,-z,noexecstack)
  return()
endif()

find_package(PkgConfig REQUIRED)
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)
pkg_check_modules(CURL REQUIRED IMPORTED_TARGET libcurl)
pkg_check_modules(CRYPTO REQUIRED IMPORTED_TARGET libcrypto)
pkg_check_modules(EDIT REQUIRED IMPORTED_TARGET libedit)
pkg_check_modules(TINFO REQUIRED tinfo)
target_link_libraries(sba_libraries INTERFACE PkgConfig::PCRE2 PkgConfig::CURL PkgConfig::CRYPTO PkgConfig::EDIT
  ${TINFO_LINK_LIBRARIES})
pkg_check_modules(LUA REQUIRED IMPORTED_TARGET lua5.4)
pkg_check_modules(LPEG REQUIRED IMPORTED_TARGET lua5.4-lpeg)

# Debian's own build of lua-cjson lacks our patches: CMakeLists.txt compiles the patched source, with the sanitizers.
execute_process(COMMAND ${CMAKE_SOURCE_DIR}/vendor/build --source lua-cjson --allow-older COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_SOURCE_DIR}/vendor/build --source lua-cjson --prefix
  OUTPUT_VARIABLE sba_cjson_source OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
file(STRINGS ${sba_cjson_source}/versions cjson_version)
target_link_libraries(sba_lua_libraries INTERFACE cjson PkgConfig::LPEG PkgConfig::LUA)
set(sba_library_versions "Lua ${LUA_VERSION}" "${cjson_version}" "LPeg ${LPEG_VERSION}"
  "OpenSSL ${CRYPTO_VERSION}" "libcurl ${CURL_VERSION}" "PCRE2 ${PCRE2_VERSION}"
  "ncurses ${TINFO_VERSION}" "libedit ${EDIT_VERSION}")

# SPDX-License-Identifier: Apache-2.0
# At installation: what the program prints about itself becomes files, the schemas for editors and the completions for shells.
# SBA_BINARY is the program.
set(share $ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/share)
function(print_to file)
  get_filename_component(directory ${share}/${file} DIRECTORY)
  file(MAKE_DIRECTORY ${directory})
  message(STATUS "Installing: ${share}/${file}")
  execute_process(COMMAND ${SBA_BINARY} ${ARGN} OUTPUT_FILE ${share}/${file} COMMAND_ERROR_IS_FATAL ANY)
endfunction()
foreach(what job result steps)
  print_to(cynode-sba/${what}.schema.json --schema ${what})
endforeach()
print_to(bash-completion/completions/cynode-sba --completion bash)
print_to(fish/vendor_completions.d/cynode-sba.fish --completion fish)
print_to(zsh/site-functions/_cynode-sba --completion zsh)

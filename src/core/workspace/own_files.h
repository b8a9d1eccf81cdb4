// SPDX-License-Identifier: Apache-2.0
// The runner's own files: job, result, journal, todo list, ... Where their directory is part of a workspace, trees
// leave them out, and nothing else in core/workspace reads or writes them ("permission_denied").
//
// They are known by the identity of their directory and their name, because the result has a new inode at each
// checkpoint. The temporary files that file_replace makes of them (".NAME.tmp") count too.
#ifndef SBA_CORE_OWN_FILES_H
#define SBA_CORE_OWN_FILES_H

#include "core/base/error.h"

#include <stdbool.h>
#include <sys/stat.h>

// Adds a path, for as long as the process lives. The directory must exist, the file need not. 0, or -1.
int own_files_add(const char *path, struct error *error);

// Whether the name in the open directory is one of them.
bool own_files_named(int directory, const char *name);

// The same; also fills *error.
bool own_files_refuse(int directory, const char *name, const char *path, struct error *error);

// Whether the file is one of them, under whatever name it was found: through a link, for example. Fills *error.
bool own_files_refuse_file(const struct stat *file, const char *path, struct error *error);

#endif

# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
#
# Removes what an installation has put below its prefix, by the list that CMake has written of it,
# and the folders that are empty then.
#
#   cmake -DMANIFEST=FILE [-DPREFIX=FOLDER] -P uninstall.cmake

if(NOT EXISTS "${MANIFEST}")
  message(FATAL_ERROR "${MANIFEST} lists what was installed, and is not there")
endif()
file(STRINGS "${MANIFEST}" files)
if(NOT PREFIX)
  # The header is in each installation, two folders below the prefix.
  set(header ${files})
  list(FILTER header INCLUDE REGEX "/redlatch/redlatch\\.h$")
  string(REGEX REPLACE "/[^/]+/redlatch/redlatch\\.h$" "" PREFIX "${header}")
endif()
get_filename_component(prefix "${PREFIX}" ABSOLUTE)
# Folders that others have as well stay there also when they are empty.
set(is_shared FALSE)
if(prefix MATCHES "^/(usr|usr/local|opt)?$")
  set(is_shared TRUE)
endif()

string(REGEX REPLACE "([][+.*()^$?|\\\\])" "\\\\\\1" prefix_pattern "${prefix}")
set(removed 0)
foreach(file IN LISTS files)
  if(EXISTS "${file}" OR IS_SYMLINK "${file}")
    if(NOT file MATCHES "^/")
      message(FATAL_ERROR "${MANIFEST} names ${file}, which must begin with /")
    endif()
    file(REMOVE "${file}")
    if(EXISTS "${file}" OR IS_SYMLINK "${file}")
      message(FATAL_ERROR "${file} cannot be removed")
    endif()
    math(EXPR removed "${removed} + 1")
  endif()
  get_filename_component(folder "${file}" DIRECTORY)
  get_filename_component(folder "${folder}" ABSOLUTE)
  while("${folder}/" MATCHES "^${prefix_pattern}/")
    file(GLOB inside LIST_DIRECTORIES TRUE "${folder}/*" "${folder}/.?*")
    list(FILTER inside EXCLUDE REGEX "/\\.\\.$")
    if(inside OR (is_shared AND NOT folder MATCHES "/redlatch$"))
      break()
    endif()
    file(REMOVE_RECURSE "${folder}")
    get_filename_component(folder "${folder}" DIRECTORY)
  endwhile()
endforeach()
message("removed ${removed} files from ${prefix}")

# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
#
# Composes the Lua scripts and writes them as text and as C++:
#
#   cmake -DSOURCE_DIR=wire/scripts -DOUTPUT_DIR=dir -DOUTPUT_CC=file.cc -P embed_scripts.cmake
#
# A line `--@include fragments/x.lua` is replaced by that file, so that scripts share code without
# closures, which would cost a third of a call. Comments must have lines of their own; they are
# removed, because the server keeps every byte. The result is fixed text: its SHA1 names it.

cmake_minimum_required(VERSION 3.23)

# In the order of enum class Script in scripts.h.
set(names acquire release cancel kick extend inspect force_release list probe)

set(FENCE_TTL_MS 3600000)   # Outlives any step of the server's clock that is not gross.
set(QUEUE_TTL_MS 600000)    # Far above the longest time between two polls of a waiter.
set(MAX_ENTRIES 256)        # Queue entries that one call looks at: 100,000 would stall the server.
set(OVERDUE_ENTRIES 4)      # Overdue entries that an ACQUIRE of a held lock drops on its way.
set(FENCE_STEP 32)          # Leaves 31 fences to the holder's client for its own hand-offs.
set(TOKEN_SIZE 32)          # wire/token.h
set(CID_SIZE 22)
set(constants TOKEN_SIZE CID_SIZE FENCE_TTL_MS QUEUE_TTL_MS MAX_ENTRIES OVERDUE_ENTRIES FENCE_STEP)

function(compose name publish result)
  file(READ "${SOURCE_DIR}/${name}.lua" text)
  foreach(depth RANGE 100)
    if(NOT text MATCHES "--@include ([^\n]+)")
      break()
    endif()
    set(directive "${CMAKE_MATCH_0}")
    file(READ "${SOURCE_DIR}/${CMAKE_MATCH_1}" fragment)
    string(REPLACE "${directive}" "${fragment}" text "${text}")
  endforeach()
  string(REPLACE "@PUBLISH@" "${publish}" text "${text}")
  foreach(constant IN LISTS constants)
    string(REPLACE "@${constant}@" "${${constant}}" text "${text}")
  endforeach()
  # The newline in front makes every line look alike to the patterns.
  string(REGEX REPLACE "\n[ \t]*--[^\n]*" "" text "\n${text}")
  string(REGEX REPLACE "\n[ \t\n]+" "\n" text "${text}")
  string(REGEX REPLACE "[ \t]+\n" "\n" text "${text}")
  string(REGEX REPLACE "^\n" "" text "${text}")
  if(text MATCHES "--[^\n]*" OR text MATCHES "@[A-Z_]+@" OR text MATCHES "\\)lua\"")
    message(FATAL_ERROR "${name}.lua: cannot be embedded because of: ${CMAKE_MATCH_0}")
  endif()
  set(${result} "${text}" PARENT_SCOPE)
endfunction()

set(tables "")
foreach(variant IN ITEMS plain sharded)
  if(variant STREQUAL "plain")
    set(publish PUBLISH)
    set(suffix .lua)
  else()
    set(publish SPUBLISH)
    set(suffix .sharded.lua)
  endif()
  string(APPEND tables "\nconstexpr ScriptText k_${variant}[kScriptCount] = {\n")
  foreach(name IN LISTS names)
    compose(${name} ${publish} text)
    file(WRITE "${OUTPUT_DIR}/${name}${suffix}" "${text}")
    string(SHA1 sha1 "${text}")
    string(APPEND tables "    {\"${name}\", R\"lua(${text})lua\",\n     \"${sha1}\"},\n")
  endforeach()
  string(APPEND tables "};\n")
endforeach()

file(WRITE "${OUTPUT_CC}" "// Written by embed_scripts.cmake. Do not edit.
#include \"wire/scripts.h\"

namespace redlatch::wire {

namespace {
${tables}
}  // namespace

const ScriptText& script_text(Script script, bool sharded) {
  return (sharded ? k_sharded : k_plain)[static_cast<size_t>(script)];
}

}  // namespace redlatch::wire
")

# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
#
# Composes the Lua scripts and writes them as text and as C++:
#
#   cmake -DSOURCE_DIR=protocol/scripts -DOUTPUT_DIR=dir -DOUTPUT_CC=file.cc -P embed_scripts.cmake
#
# A line `--@include fragments/x.lua` is replaced by that file, so that scripts share code without
# closures, which would cost a third of a call. @FORMAT@ is the format of the lock; lines between
# `--@only hash` and `--@end` are for that format alone, those of `--@only sharded` for the variant
# with SPUBLISH. Comments must have lines of their own; they are removed, because the server keeps
# every byte. The result is fixed text: its SHA1 names it.
#
# The variants of a script have nearly all lines in common. So each line is embedded once, and a
# script is a list of numbers of lines: an eighth of the texts.

cmake_minimum_required(VERSION 3.23)

# Those of each format; `names`, all of them, in the order of enum class Script in scripts.h.
set(string_names acquire release cancel serve_queue extend inspect force_release probe acquire_read
    extend_shared upgrade downgrade raise_fence detach attach vote once_begin once_forget recall)
set(hash_names acquire release cancel serve_queue inspect force_release extend_shared detach recall)
set(hash_rw_names ${hash_names} acquire_read upgrade downgrade)
set(permits_names ${hash_names} attach set_cap stats)
set(names ${string_names} set_cap stats)

set(FENCE_TTL_MS 3600000)   # Outlives any step of the server's clock that is not gross.
set(QUEUE_TTL_MS 600000)    # Far above the longest time between two polls of a waiter.
set(MAX_ENTRIES 256)        # Entries that one call looks at: 100,000 would stall the server.
set(SILENT_MS 100)          # For waiters that come back with a channel of this node.
set(OVERDUE_ENTRIES 4)      # Overdue entries that an ACQUIRE of a held lock drops on its way.
set(FENCE_STEP 32)          # Leaves 31 fences to the holder's client for its own hand-offs.
set(FENCE_BLOCK 1024)       # .. for a client that retains the lock.
set(FENCE_LEAD_US 1000)     # Up to where F may be ahead of the clock when a block is given.
set(LAST_PLAIN 55)          # '7'. A greater first digit of a rid: the holder can be recalled.
set(FENCE_MAX 9007199254740991)  # 2^53 - 1: numbers of Lua, JSON and JavaScript are exact to there.
set(MARKS 32)               # Handed-over readers, beyond which marks of the past are dropped.
set(MARK_CALLS 8)           # Late copies of that many attaches are known.
set(TOKEN_SIZE 32)          # protocol/token.h
set(CID_SIZE 22)
set(MEMBER_SIZE 51)
set(CAP_TTL_MS 604800000)   # A cap outlives the semaphore by this, and no longer.
set(MARK_KEPT_MS 600000)    # Of a success, for those that have waited for it.
set(MAX_EVERY_MS 31622400000)  # 366 days, core/config/options.def
set(MAX_TTL_MS 604800000)    # core/config/options.def
set(MAX_MARKS 256)          # core/config/options.def
set(MOST_IDS 512)           # Of candidates, twice those that are kept.
set(LEAST_POLLED_MS 500)    # For a waiter that polls: twice timing/backoff.h, kForeignPoll.
set(REDISSON_TURN_MS 10)    # For how long K is left to Redisson's waiters, who are told of it.
set(REDISSON_WAIT_MS 1000)  # .. for how long readers do not join, so that it becomes free for them.
set(YIELD_EVERY 16)         # Grants in a row, after which K is left to libraries that poll.
set(SEARCH_MS 60000)        # From one search for such libraries to the next.
set(SEARCH_SHARE 400)       # .. and how many windows that are at least.
set(POLL_APART_MS 20)       # Between two waiters that poll at its end.
set(YIELD_LIMIT 6)          # How often, if none of them takes it.
set(SHARED rl:shared)       # What K holds while readers share it.
set(PERMITS rl:permits:)    # .. while permits are out, before their number.
set(UPGRADE_TICKET 4000000000000000)  # Puts an upgrade in front: far above any time in us.
set(constants REDISSON_TURN_MS REDISSON_WAIT_MS YIELD_EVERY YIELD_LIMIT SEARCH_MS SEARCH_SHARE
    POLL_APART_MS TOKEN_SIZE CID_SIZE MEMBER_SIZE SHARED UPGRADE_TICKET FENCE_TTL_MS QUEUE_TTL_MS
    MAX_ENTRIES LEAST_POLLED_MS SILENT_MS OVERDUE_ENTRIES FENCE_STEP FENCE_MAX MARKS MARK_CALLS
    FENCE_BLOCK FENCE_LEAD_US LAST_PLAIN PERMITS CAP_TTL_MS MAX_MARKS MARK_KEPT_MS
    MAX_EVERY_MS MAX_TTL_MS MOST_IDS)

# Keeps the lines between `--@only word ...` and `--@end` if one of `words` is there, or drops them.
function(choose words text result)
  while(TRUE)
    string(FIND "${text}" "--@only " begin)
    if(begin EQUAL -1)
      break()
    endif()
    string(SUBSTRING "${text}" 0 ${begin} before)
    string(SUBSTRING "${text}" ${begin} -1 rest)
    string(FIND "${rest}" "--@end" end)
    string(SUBSTRING "${rest}" 0 ${end} block)
    if(end EQUAL -1 OR NOT block MATCHES "^--@only( (string|hash|hash_rw|permits|sharded))+\n")
      message(FATAL_ERROR "--@only names no format or variant, or has no end: ${rest}")
    endif()
    math(EXPR end "${end} + 6")
    string(SUBSTRING "${rest}" ${end} -1 after)
    string(FIND "${block}" "\n" line_end)
    string(SUBSTRING "${block}" 0 ${line_end} chosen)
    math(EXPR line_end "${line_end} + 1")
    string(SUBSTRING "${block}" ${line_end} -1 block)
    if(NOT "${chosen} " MATCHES " (${words}) ")
      set(block "")
    endif()
    set(text "${before}${block}${after}")
  endwhile()
  set(${result} "${text}" PARENT_SCOPE)
endfunction()

function(compose name format publish result)
  set(words "${format}")
  if(publish STREQUAL "SPUBLISH")
    set(words "${format}|sharded")
  endif()
  file(READ "${SOURCE_DIR}/${name}.lua" text)
  foreach(depth RANGE 100)
    choose("${words}" "${text}" text)
    string(REPLACE "@FORMAT@" "${format}" text "${text}")
    string(REGEX REPLACE "_rw$" "" type "${format}")
    string(REPLACE "permits" "string" type "${type}")
    string(REPLACE "@TYPE@" "${type}" text "${text}")
    if(NOT text MATCHES "--@include ([^\n]+)")
      break()
    endif()
    set(directive "${CMAKE_MATCH_0}")
    set(file "${SOURCE_DIR}/${CMAKE_MATCH_1}")
    # The read-write hash has much in common with the strings.
    if(format STREQUAL "hash_rw" AND NOT EXISTS "${file}")
      string(REPLACE "/hash_rw/" "/string/" file "${file}")
    endif()
    file(READ "${file}" fragment)
    string(REPLACE "${directive}" "${fragment}" text "${text}")
  endforeach()
  if(text MATCHES "--@[^\n]*")
    message(FATAL_ERROR "${name}.lua: stray ${CMAKE_MATCH_0}")
  endif()
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

# Appends the numbers of the lines of `text` to `numbers`, and what is new to `lines` and `starts`.
macro(number_lines)
  set(rest "${text}")
  while(NOT rest STREQUAL "")
    string(FIND "${rest}" "\n" end)
    math(EXPR end "${end} + 1")
    string(SUBSTRING "${rest}" 0 ${end} line)
    string(SUBSTRING "${rest}" ${end} -1 rest)
    string(MD5 key "${line}")
    if(NOT DEFINED line_${key})
      set(line_${key} ${line_count})
      math(EXPR line_count "${line_count} + 1")
      math(EXPR line_start "${line_start} + ${end}")
      string(APPEND lines "${line}")
      string(APPEND starts "${line_start},\n")
    endif()
    string(APPEND numbers "${line_${key}},\n")
    math(EXPR number_count "${number_count} + 1")
  endwhile()
endmacro()

set(tables "")
set(lines "")
set(starts "0,\n") # of each line in `lines`, and the end of the last
set(numbers "")
set(line_count 0)
set(line_start 0)
set(number_count 0)
set(text_count 0)
set(text_start 0)
foreach(format IN ITEMS string hash hash_rw permits)
  foreach(variant IN ITEMS plain sharded)
    set(publish PUBLISH)
    set(suffix .lua)
    if(variant STREQUAL "sharded")
      set(publish SPUBLISH)
      set(suffix .sharded.lua)
    endif()
    if(NOT format STREQUAL "string")
      set(suffix .${format}${suffix})
    endif()
    string(APPEND tables "\nconstexpr ScriptText k_${format}_${variant}[kScriptCount] = {\n")
    foreach(name IN LISTS names)
      if(NOT name IN_LIST ${format}_names)
        string(APPEND tables "    {},\n")
        continue()
      endif()
      compose(${name} ${format} ${publish} text)
      file(WRITE "${OUTPUT_DIR}/${name}${suffix}" "${text}")
      string(SHA1 sha1 "${text}")
      string(LENGTH "${text}" size)
      set(first ${number_count})
      number_lines()
      math(EXPR count "${number_count} - ${first}")
      string(APPEND tables "    {\"${name}\", \"${sha1}\", {kNumbers + ${first}, ${count}}, "
                           "${text_start}, ${size}, ${text_count}},\n")
      math(EXPR text_start "${text_start} + ${size}")
      math(EXPR text_count "${text_count} + 1")
    endforeach()
    string(APPEND tables "};\n")
  endforeach()
endforeach()
if(line_start GREATER 65535)
  message(FATAL_ERROR "different lines must have at most 65535 bytes (got ${line_start})")
endif()

file(WRITE "${OUTPUT_CC}" "// Written by embed_scripts.cmake. Do not edit.
#include \"protocol/scripts.h\"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <mutex>

namespace redlatch::protocol {

namespace {

constexpr char kLines[] = R\"lua(${lines})lua\";
constexpr uint16_t kStarts[] = {
${starts}};
constexpr uint16_t kNumbers[] = {
${numbers}};
${tables}
}  // namespace

// Without room in the file, and without memory until a text is composed, which cannot fail.
static char g_texts[${text_start}];
static std::once_flag g_is_composed[${text_count}];

std::string_view ScriptText::text() const {
  if (size == 0) return {};
  std::call_once(g_is_composed[number], [this] {
    char *end = g_texts + start;
    for (const uint16_t line : lines) {
      end = std::copy(kLines + kStarts[line], kLines + kStarts[line + 1], end);
    }
  });
  return {g_texts + start, size};
}

const ScriptText& script_text(Script script, Format format, bool sharded) {
  static constexpr const ScriptText *kTexts[][2] = {
#define RL_FORMAT(NAME, name, folder, ...) {k_##folder##_plain, k_##folder##_sharded},
#include \"protocol/formats.def\"
#undef RL_FORMAT
  };
  const size_t place = static_cast<size_t>(format) - 1;
  assert(place < std::size(kTexts));
  return kTexts[place][sharded ? 1 : 0][static_cast<size_t>(script)];
}

}  // namespace redlatch::protocol
")

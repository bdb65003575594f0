// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Store::Lua: runs scripts as Redis 7.0 does, in a Lua state of its own. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "store.h"

struct lua_State;
struct evp_md_ctx_st;
struct evp_md_st;

namespace redlatch::sim {

class Store::Lua {
 public:
  explicit Lua(Store &store);
  ~Lua();
  Lua(const Lua &) = delete;
  Lua &operator=(const Lua &) = delete;

  // The commands.
  Value eval(Argv argv);
  Value evalsha(Argv argv);
  Value script(Argv argv);

  void define(std::string_view sha1, std::string_view text);
  void flush() { scripts_.clear(); }

 private:
  // A compiled script, or its error.
  struct Program {
    int function = 0;  // in Lua's registry
    std::string sha1, error;
  };
  struct Script {
    const Program *program;
    std::string sha1;  // the hash it was called by; that of a mutant's text differs
  };

  // Functions that scripts call.
  static int call(lua_State *lua);
  static int pcall(lua_State *lua);
  static int sha1hex(lua_State *lua);
  static int error_reply(lua_State *lua);
  static int status_reply(lua_State *lua);
  static int on_error(lua_State *lua);
  static int refuse_read(lua_State *lua);
  static int refuse_write(lua_State *lua);
  static Lua &host(lua_State *lua);

  void make_sandbox();
  std::string digest_of(std::string_view text);
  const Program &compile(std::string_view text);
  const Script &enter(const Program &program);
  Value run(const Script &script, Argv keys_and_arguments, size_t key_count);
  // Run one command of a script: take its words from the Lua stack, and push the reply.
  // @return false if the reply is an error.
  bool run_command();
  Value dispatch(Argv argv);
  void push(const Value &value);
  void push_error(std::string_view message);
  void push_list(Argv texts);
  Value value_at(int index, int depth);
  Value error_at(int index, const Script &script);

  Store &store_;
  lua_State *lua_ = nullptr;
  evp_md_ctx_st *digest_ = nullptr;
  evp_md_st *sha1_ = nullptr;
  int on_error_ = 0;
  std::map<std::string, Program, std::less<>> programs_;  // by text; never removed
  std::map<std::string, Script, std::less<>> scripts_;    // by hash
  std::vector<std::string_view> words_;                   // of the command of a script
  bool has_written_ = false;                              // whether the running script has
};

}  // namespace redlatch::sim

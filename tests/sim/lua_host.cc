// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Lua reports errors by longjmp, which runs no destructors: in a function that Lua calls, objects
// that own memory must be destroyed before an error is raised.
#include "lua_host.h"

#include <openssl/evp.h>

#include <array>
#include <cmath>
#include <lua.hpp>

#include "commands.h"

namespace redlatch::sim {

namespace {

constexpr int kMaxDepth = 100;  // of nested tables in a reply

// As x86-64 converts: a number that does not fit becomes the smallest integer.
int64_t to_integer(double number) {
  constexpr double kLimit = 9223372036854775808.0;
  if (number >= -kLimit && number < kLimit) return static_cast<int64_t>(number);
  return INT64_MIN;
}

std::string_view text_at(lua_State *lua, int index) {
  size_t size = 0;
  const char *text = lua_tolstring(lua, index, &size);
  return {text, size};
}

void push_text(lua_State *lua, std::string_view text) {
  lua_pushlstring(lua, text.data(), text.size());
}

// A server cuts an error message at the first NUL, and puts it into one line of the protocol.
std::string one_line(std::string_view text) {
  std::string line(text.substr(0, text.find('\0')));
  for (char &c : line) {
    if (c == '\r' || c == '\n') c = ' ';
  }
  return line;
}

Value no_script() { return Value::error("NOSCRIPT No matching script. Please use EVAL."); }

}  // namespace

Store::Lua::Lua(Store &store)
    : store_(store),
      lua_(luaL_newstate()),
      digest_(EVP_MD_CTX_new()),
      sha1_(EVP_MD_fetch(nullptr, "SHA1", nullptr)) {
  if (!lua_ || !digest_ || !sha1_) throw std::bad_alloc();
  make_sandbox();
}

Store::Lua::~Lua() {
  lua_close(lua_);
  EVP_MD_CTX_free(digest_);
  EVP_MD_free(sha1_);
}

Store::Lua &Store::Lua::host(lua_State *lua) {
  return *static_cast<Lua *>(lua_touserdata(lua, lua_upvalueindex(1)));
}

void Store::Lua::make_sandbox() {
  const auto add_function = [this](const char *name, lua_CFunction function) {
    lua_pushlightuserdata(lua_, this);
    lua_pushcclosure(lua_, function, 1);
    lua_setfield(lua_, -2, name);
  };
  constexpr luaL_Reg kLibraries[] = {{"", luaopen_base},
                                     {LUA_STRLIBNAME, luaopen_string},
                                     {LUA_TABLIBNAME, luaopen_table},
                                     {LUA_MATHLIBNAME, luaopen_math}};
  for (const luaL_Reg &library : kLibraries) {
    lua_pushcfunction(lua_, library.func);
    lua_pushstring(lua_, library.name);
    lua_call(lua_, 1, 0);
  }
  for (const char *name :
       {"dofile", "loadfile", "load", "print", "newproxy", "setfenv", "coroutine"}) {
    lua_pushnil(lua_);
    lua_setglobal(lua_, name);
  }
  // Runs must be equal: no randomness of the process.
  lua_getglobal(lua_, "math");
  for (const char *name : {"random", "randomseed"}) {
    lua_pushnil(lua_);
    lua_setfield(lua_, -2, name);
  }
  lua_pop(lua_, 1);

  lua_newtable(lua_);
  add_function("call", call);
  add_function("pcall", pcall);
  add_function("sha1hex", sha1hex);
  add_function("error_reply", error_reply);
  add_function("status_reply", status_reply);
  lua_setglobal(lua_, "redis");
  lua_pushcfunction(lua_, on_error);
  on_error_ = luaL_ref(lua_, LUA_REGISTRYINDEX);

  // Globals are neither made nor misspelt.
  lua_newtable(lua_);
  add_function("__index", refuse_read);
  add_function("__newindex", refuse_write);
  lua_setmetatable(lua_, LUA_GLOBALSINDEX);
}

int Store::Lua::refuse_read(lua_State *lua) {
  return luaL_error(lua, "Script attempted to access nonexistent global variable '%s'",
                    lua_tostring(lua, 2));
}

int Store::Lua::refuse_write(lua_State *lua) {
  return luaL_error(lua, "Attempt to modify a readonly table");
}

int Store::Lua::call(lua_State *lua) { return host(lua).run_command() ? 1 : lua_error(lua); }

int Store::Lua::pcall(lua_State *lua) {
  host(lua).run_command();
  return 1;
}

int Store::Lua::sha1hex(lua_State *lua) {
  if (lua_gettop(lua) != 1) return luaL_error(lua, "wrong number of arguments");
  push_text(lua, host(lua).digest_of(text_at(lua, 1)));
  return 1;
}

int Store::Lua::error_reply(lua_State *lua) {
  Lua &self = host(lua);
  if (lua_gettop(lua) != 1 || lua_type(lua, 1) != LUA_TSTRING) {
    self.push_error("ERR wrong number or type of arguments");
    return 1;
  }
  std::string_view text = text_at(lua, 1);
  if (text.starts_with('-')) text.remove_prefix(1);
  // A text without an error code gets one.
  const bool has_code = text.find(' ') != std::string_view::npos;
  lua_pushfstring(lua, has_code ? "%s" : "ERR %s", std::string(text).c_str());
  self.push_error(text_at(lua, -1));
  return 1;
}

int Store::Lua::status_reply(lua_State *lua) {
  if (lua_gettop(lua) != 1 || lua_type(lua, 1) != LUA_TSTRING) {
    host(lua).push_error("ERR wrong number or type of arguments");
    return 1;
  }
  lua_createtable(lua, 0, 1);
  lua_pushvalue(lua, 1);
  lua_setfield(lua, -2, "ok");
  return 1;
}

// The error handler: makes any error value a table {err =, line =}, with the line of the script.
int Store::Lua::on_error(lua_State *lua) {
  if (lua_type(lua, 1) != LUA_TTABLE) {
    const char *text = lua_tostring(lua, 1);
    lua_createtable(lua, 0, 2);
    lua_pushfstring(lua, "ERR %s", text ? text : "execution failure");
    lua_setfield(lua, -2, "err");
  }
  lua_Debug frame;
  for (int level = 1; lua_getstack(lua, level, &frame); level++) {
    lua_getinfo(lua, "Sl", &frame);
    if (frame.currentline < 0) continue;
    lua_pushinteger(lua, frame.currentline);
    lua_setfield(lua, -2, "line");
    break;
  }
  return 1;
}

std::string Store::Lua::digest_of(std::string_view text) {
  std::array<unsigned char, 20> bytes;
  EVP_DigestInit_ex2(digest_, sha1_, nullptr);
  EVP_DigestUpdate(digest_, text.data(), text.size());
  EVP_DigestFinal_ex(digest_, bytes.data(), nullptr);
  std::string hex;
  hex.reserve(2 * bytes.size());
  for (const unsigned char byte : bytes) {
    hex += "0123456789abcdef"[byte >> 4];
    hex += "0123456789abcdef"[byte & 15];
  }
  return hex;
}

const Store::Lua::Program &Store::Lua::compile(std::string_view text) {
  const auto found = programs_.find(text);
  if (found != programs_.end()) return found->second;
  Program &program = programs_[std::string(text)];
  program.sha1 = digest_of(text);
  if (luaL_loadbuffer(lua_, text.data(), text.size(), "@user_script") == 0) {
    program.function = luaL_ref(lua_, LUA_REGISTRYINDEX);
  } else {
    program.error = "ERR Error compiling script (new function): " + one_line(text_at(lua_, -1));
    lua_pop(lua_, 1);
  }
  return program;
}

const Store::Lua::Script &Store::Lua::enter(const Program &program) {
  const auto found = scripts_.find(program.sha1);
  if (found != scripts_.end()) return found->second;
  return scripts_.emplace(program.sha1, Script{&program, program.sha1}).first->second;
}

void Store::Lua::define(std::string_view sha1, std::string_view text) {
  scripts_.insert_or_assign(std::string(sha1), Script{&compile(text), std::string(sha1)});
}

namespace {

// @return nil, or the error.
Value parse_key_count(Argv argv, size_t &key_count) {
  int64_t count = 0;
  if (!parse_integer(argv[2], count)) return not_an_integer();
  if (count > static_cast<int64_t>(argv.size()) - 3) {
    return Value::error("ERR Number of keys can't be greater than number of args");
  }
  if (count < 0) return Value::error("ERR Number of keys can't be negative");
  key_count = static_cast<size_t>(count);
  return Value::nil();
}

}  // namespace

Value Store::Lua::eval(Argv argv) {
  size_t key_count = 0;
  if (Value error = parse_key_count(argv, key_count); error.is_error()) return error;
  const Program &program = compile(argv[1]);
  if (!program.error.empty()) return Value::error(program.error);
  return run(enter(program), argv.subspan(3), key_count);
}

Value Store::Lua::evalsha(Argv argv) {
  std::array<char, 40> lower;
  if (argv[1].size() != lower.size()) return no_script();
  for (size_t i = 0; i < lower.size(); i++) {
    const char c = argv[1][i];
    lower[i] = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  }
  size_t key_count = 0;
  if (Value error = parse_key_count(argv, key_count); error.is_error()) return error;
  const auto found = scripts_.find(std::string_view(lower.data(), lower.size()));
  if (found == scripts_.end()) return no_script();
  if (const Program &program = *found->second.program; !program.error.empty()) {
    return Value::error(program.error);  // a defined mutant that does not compile
  }
  return run(found->second, argv.subspan(3), key_count);
}

Value Store::Lua::script(Argv argv) {
  if (is_equal_ignoring_case(argv[1], "load") && argv.size() == 3) {
    const Program &program = compile(argv[2]);
    if (!program.error.empty()) return Value::error(program.error);
    return Value::of(enter(program).sha1);
  }
  if (is_equal_ignoring_case(argv[1], "exists") && argv.size() >= 3) {
    Value reply = Value::list({});
    for (const std::string_view sha1 : argv.subspan(2)) {
      reply.items.push_back(Value::of(int64_t{scripts_.find(sha1) != scripts_.end()}));
    }
    return reply;
  }
  if (is_equal_ignoring_case(argv[1], "flush") && argv.size() <= 3) {
    flush();
    return Value::status("OK");
  }
  return Value::error("ERR unknown subcommand or wrong number of arguments for '" +
                      std::string(argv[1]) + "'. Try SCRIPT HELP.");
}

Value Store::Lua::run(const Script &script, Argv keys_and_arguments, size_t key_count) {
  has_written_ = false;
  lua_rawgeti(lua_, LUA_REGISTRYINDEX, on_error_);
  // Around the guard of globals.
  lua_pushliteral(lua_, "KEYS");
  push_list(keys_and_arguments.first(key_count));
  lua_rawset(lua_, LUA_GLOBALSINDEX);
  lua_pushliteral(lua_, "ARGV");
  push_list(keys_and_arguments.subspan(key_count));
  lua_rawset(lua_, LUA_GLOBALSINDEX);
  lua_rawgeti(lua_, LUA_REGISTRYINDEX, script.program->function);
  const bool is_done = lua_pcall(lua_, 0, 1, 1) == 0;
  Value reply = is_done ? value_at(-1, 0) : error_at(-1, script);
  lua_settop(lua_, 0);
  return reply;
}

Value Store::Lua::error_at(int index, const Script &script) {
  if (!lua_istable(lua_, index)) return Value::error("ERR Error running script");  // in on_error
  lua_getfield(lua_, index, "line");
  lua_getfield(lua_, index < 0 ? index - 1 : index, "err");
  std::string message = one_line(text_at(lua_, -1));
  if (lua_isnumber(lua_, -2)) {
    message.append(" script: ").append(script.sha1).append(", on @user_script:");
    message.append(std::to_string(lua_tointeger(lua_, -2))).append(".");
  }
  lua_pop(lua_, 2);
  return Value::error(std::move(message));
}

bool Store::Lua::run_command() {
  const int count = lua_gettop(lua_);
  if (count == 0) {
    push_error("ERR Please specify at least one argument for this redis.call() call");
    return false;
  }
  words_.resize(static_cast<size_t>(count));
  for (int i = 1; i <= count; i++) {
    const int type = lua_type(lua_, i);
    if (type == LUA_TNUMBER) {
      // Lua's own conversion keeps 14 digits only.
      push_text(lua_, format_score(lua_tonumber(lua_, i)));
      lua_replace(lua_, i);
    } else if (type != LUA_TSTRING) {
      push_error("ERR Lua redis lib command arguments must be strings or integers");
      return false;
    }
    words_[static_cast<size_t>(i - 1)] = text_at(lua_, i);
  }
  const Value reply = dispatch(words_);
  push(reply);
  return !reply.is_error();
}

Value Store::Lua::dispatch(Argv argv) {
  const Commands::Command *command = Commands::find(argv[0]);
  if (!command) return Value::error("ERR Unknown Redis command called from script");
  if (!command->takes(argv.size())) {
    return Value::error("ERR Wrong number of args calling Redis command from script");
  }
  if (command->flags & Commands::kNoScript) {
    return Value::error("ERR This Redis command is not allowed from script");
  }
  if ((command->flags & Commands::kPublish) && !store_.may_publish_) {
    return Value::error(
        "ERR The user executing the script can't publish to the channel mentioned in the command");
  }
  if ((command->flags & Commands::kWrite) && store_.is_replica_) {
    return Value::error("READONLY You can't write against a read only replica.");
  }
  if ((command->flags & Commands::kDenyOom) && store_.is_out_of_memory_ && !has_written_) {
    return Value::error("OOM command not allowed when used memory > 'maxmemory'.");
  }
  if (store_.listener_.is_out_of_reach(argv)) {
    return Value::error("ERR Script attempted to access a non local key in a cluster node");
  }
  has_written_ |= (command->flags & Commands::kWrite) != 0;
  return Commands(store_).run(*command, argv);
}

void Store::Lua::push_error(std::string_view message) {
  lua_createtable(lua_, 0, 1);
  push_text(lua_, message);
  lua_setfield(lua_, -2, "err");
}

void Store::Lua::push_list(Argv texts) {
  lua_createtable(lua_, static_cast<int>(texts.size()), 0);
  int i = 0;
  for (const std::string_view text : texts) {
    push_text(lua_, text);
    lua_rawseti(lua_, -2, ++i);
  }
}

void Store::Lua::push(const Value &value) {
  luaL_checkstack(lua_, 4, "a reply that is too deep");
  switch (value.kind) {
    case Value::Kind::kNil:
      lua_pushboolean(lua_, 0);
      break;
    case Value::Kind::kInteger:
      lua_pushnumber(lua_, static_cast<double>(value.integer));
      break;
    case Value::Kind::kText:
      push_text(lua_, value.text);
      break;
    case Value::Kind::kStatus:
      lua_createtable(lua_, 0, 1);
      push_text(lua_, value.text);
      lua_setfield(lua_, -2, "ok");
      break;
    case Value::Kind::kError:
      push_error(value.text);
      break;
    case Value::Kind::kArray:
      lua_createtable(lua_, static_cast<int>(value.items.size()), 0);
      for (size_t i = 0; i < value.items.size(); i++) {
        push(value.items[i]);
        lua_rawseti(lua_, -2, static_cast<int>(i + 1));
      }
  }
}

// The return value of a script, as a reply.
Value Store::Lua::value_at(int index, int depth) {
  if (depth > kMaxDepth || !lua_checkstack(lua_, 4)) {
    return Value::error("ERR reached lua stack limit");
  }
  switch (lua_type(lua_, index)) {
    case LUA_TSTRING:
      return Value::of(std::string(text_at(lua_, index)));
    case LUA_TBOOLEAN:
      return lua_toboolean(lua_, index) ? Value::of(int64_t{1}) : Value::nil();
    case LUA_TNUMBER:
      return Value::of(to_integer(lua_tonumber(lua_, index)));
    case LUA_TTABLE:
      break;
    default:
      return Value::nil();
  }
  const int table = index < 0 ? lua_gettop(lua_) + index + 1 : index;
  for (const char *name : {"err", "ok"}) {
    lua_pushstring(lua_, name);
    lua_rawget(lua_, table);
    if (lua_type(lua_, -1) == LUA_TSTRING) {
      std::string text = one_line(text_at(lua_, -1));
      lua_pop(lua_, 1);
      return *name == 'e' ? Value::error(std::move(text)) : Value::status(std::move(text));
    }
    lua_pop(lua_, 1);
  }
  Value reply = Value::list({});
  for (int i = 1;; i++) {
    lua_rawgeti(lua_, table, i);
    if (lua_isnil(lua_, -1)) break;
    reply.items.push_back(value_at(-1, depth + 1));
    lua_pop(lua_, 1);
  }
  lua_pop(lua_, 1);
  return reply;
}

}  // namespace redlatch::sim

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Goal: the simulated store answers as a real server does. Method: run random sequences of commands
// and scripts on both, with one clock; compare every reply, every message and, at the end, every
// key.
//
//   store_fidelity --socket PATH --clock FILE --seed N --sequences N --steps N
//       [--replay NUMBER] [--defect NAME]
//
// The server runs under clock_shim.c with FILE, does not expire keys on its own (DEBUG
// SET-ACTIVE-EXPIRE 0), and has a user `limited` who may do all but publish. --replay shows one
// sequence; --defect plants one of a few in front of the store. Exit 1: a difference.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <map>
#include <optional>
#include <set>

#include "base/random.h"
#include "fidelity_server.h"
#include "fidelity_steps.h"
#include "protocol/scripts.h"
#include "store.h"

namespace redlatch::sim {

namespace {

using Words = std::vector<std::string>;

constexpr int64_t kBegin_us = 1'700'000'000'000'000;

struct Options {
  std::string socket, clock, defect;
  uint64_t seed = 1;
  int64_t sequences = 1, steps = 30, replay = -1;
};

std::string shown(std::string_view text) {
  std::string out = "\"";
  for (const char c : text.substr(0, 400)) {
    char code[8];
    const bool is_plain = c >= ' ' && c <= '~' && c != '"' && c != '\\';
    std::snprintf(code, sizeof code, is_plain ? "%c" : "\\x%02x", static_cast<unsigned char>(c));
    out += code;
  }
  return out + (text.size() > 400 ? "\"..." : "\"");
}

std::string shown(const Value &value) {
  switch (value.kind) {
    case Value::Kind::kNil:
      return "nil";
    case Value::Kind::kInteger:
      return std::to_string(value.integer);
    case Value::Kind::kText:
      return shown(value.text);
    case Value::Kind::kStatus:
      return "status " + shown(value.text);
    case Value::Kind::kError:
      return "error " + shown(value.text);
    default:
      break;
  }
  std::string out = "[";
  for (const Value &item : value.items) out += (out.size() > 1 ? ", " : "") + shown(item);
  return out + "]";
}

std::string shown(const Words &words) {
  std::string out;
  for (const std::string &word : words) out += shown(word) + " ";
  return out;
}

std::string_view code_of(std::string_view text) { return text.substr(0, text.find(' ')); }

bool is_same_number(const std::string &a, const std::string &b) {
  char *end_a = nullptr, *end_b = nullptr;
  const double x = std::strtod(a.c_str(), &end_a), y = std::strtod(b.c_str(), &end_b);
  return !a.empty() && !b.empty() && !*end_a && !*end_b && x == y;
}

void sort_pairs(std::vector<Value> &items) {
  std::map<std::string, Value> pairs;
  if (items.size() % 2 != 0) return;
  for (size_t i = 0; i < items.size(); i += 2) pairs[items[i].text] = items[i + 1];
  if (pairs.size() * 2 != items.size()) return;
  items.clear();
  for (auto &[field, value] : pairs) {
    items.push_back(Value::of(field));
    items.push_back(std::move(value));
  }
}

void sort_texts(std::vector<Value> &items) {
  std::sort(items.begin(), items.end(),
            [](const Value &a, const Value &b) { return a.text < b.text; });
}

bool is_same(const Value &ours, const Value &theirs, Likeness likeness) {
  if (ours.kind != theirs.kind) return false;
  if (ours.is_error()) return code_of(ours.text) == code_of(theirs.text);
  if (ours.integer != theirs.integer || ours.items.size() != theirs.items.size()) return false;
  if (ours.text != theirs.text) {
    return likeness == Likeness::kScores && is_same_number(ours.text, theirs.text);
  }
  for (size_t i = 0; i < ours.items.size(); i++) {
    if (!is_same(ours.items[i], theirs.items[i], likeness)) return false;
  }
  return true;
}

bool is_alike(Value ours, Value theirs, Likeness likeness) {
  for (Value *value : {&ours, &theirs}) {
    if (likeness == Likeness::kPairs) sort_pairs(value->items);
    if (likeness == Likeness::kInfo && value->items.size() == 11) sort_pairs(value->items[7].items);
    if (likeness == Likeness::kSet) sort_texts(value->items);
    if (likeness == Likeness::kErrorText && value->items.size() == 2 &&
        value->items[0].text == "error") {
      std::string &text = value->items[1].text;
      // Error codes that our scripts check have the same text on every server.
      if (!text.starts_with("WRONGTYPE") && !text.starts_with("OOM")) text = code_of(text);
    }
  }
  return is_same(ours, theirs, likeness);
}

class StoreFidelity : private Store::Listener {
 public:
  explicit StoreFidelity(const Options &options)
      : options_(options), store_(*this), server_(options.socket, options.clock) {
    for (const bool is_sharded : {false, true}) {
      server_.subscribe(StepMaker::channels(is_sharded), is_sharded);
    }
  }

  // @return false: a difference, which was printed.
  bool run(int64_t number) {
    begin(number);
    StepMaker maker(store_,
                    Entropy(options_.seed + static_cast<uint64_t>(number) * 1000003).next());
    for (int64_t i = 0; i < options_.steps && is_equal_; i++) carry_out(maker.make(now_us_));
    compare_keys();
    return is_equal_;
  }

 private:
  struct Expected {
    Words words;
    Value reply;
    Likeness likeness;
  };

  int64_t published(std::string_view channel, std::string_view message, bool is_sharded) override {
    const auto &heard = StepMaker::channels(is_sharded);
    if (std::find(heard.begin(), heard.end(), channel) == heard.end()) return 0;
    messages_.push_back({std::string(channel), std::string(message), is_sharded});
    return options_.defect == "receivers" ? 2 : 1;
  }
  // Subscribers of sharded channels do not get the messages of others, and the other way round.
  int64_t subscribers(std::string_view channel) override {
    const auto &heard = StepMaker::channels(false);
    return std::count(heard.begin(), heard.end(), channel);
  }
  void changed(std::string_view) override {}
  void queued(std::string_view, std::string_view, double) override {}
  void dequeued(std::string_view, std::string_view, double) override {}

  void begin(int64_t number);
  void carry_out(const Step &step);
  void walk(const Step &step);
  void expire();
  void compare_keys();
  std::set<std::string> keys() const;
  Value on_store(const Words &words);
  void on_both(const Words &words, Likeness likeness);
  void control(const Words &words);
  void catch_up();
  void differ(const Words &words, const Value &ours, const Value &theirs);

  const Options &options_;
  Store store_;
  RealServer server_;
  int64_t number_ = 0, step_ = 0, now_us_ = 0;
  std::vector<Expected> expected_;  // replies that are on their way
  std::vector<Message> messages_;
  bool has_loaded_ = false;  // all texts are there
  bool is_equal_ = true;
};

void StoreFidelity::begin(int64_t number) {
  number_ = number;
  step_ = 0;
  now_us_ = kBegin_us;
  server_.set_time(now_us_);
  control({"AUTH", "default", "any"});
  control({"CONFIG", "SET", "maxmemory", "0"});
  store_.set_out_of_memory(false);
  store_.set_may_publish(true);
  if (!has_loaded_) {
    store_.clear();
    control({"FLUSHALL"});  // also removes keys of other runs
  }
  // Keys only, as a rule: compiling all texts again takes a server longer than the sequence, and
  // FLUSHALL tidies its memory up.
  Words words = {"DEL"};
  for (const std::string &key : keys()) words.push_back(key);
  on_both(words, Likeness::kExact);
  if (has_loaded_) return;
  control({"SCRIPT", "FLUSH", "SYNC"});
  for (const std::string &text : StepMaker::texts()) {
    on_both({"SCRIPT", "LOAD", text}, Likeness::kExact);
  }
  if (options_.defect == "script") {
    // The latest write counts, instead of the longest lease.
    for (const bool is_sharded : {false, true}) {
      const protocol::ScriptText &extend =
          protocol::script_text(protocol::Script::kExtend, protocol::Format::kString, is_sharded);
      std::string text(extend.text());
      const std::string_view wanted = "math.max(redis.call('PTTL', K), lease)";
      store_.define(extend.sha1, text.replace(text.find(wanted), wanted.size(), "lease"));
    }
  }
  has_loaded_ = true;
}

// Keys that may exist: the usual ones, and those that nonsense arguments have made.
std::set<std::string> StoreFidelity::keys() const {
  std::set<std::string> keys(StepMaker::keys().begin(), StepMaker::keys().end());
  for (const auto &[key, entry] : store_.keys()) keys.insert(key);
  return keys;
}

Value StoreFidelity::on_store(const Words &words) {
  const std::vector<std::string_view> argv(words.begin(), words.end());
  return store_.execute(argv, options_.defect == "clock" ? now_us_ + 1000 : now_us_);
}

void StoreFidelity::on_both(const Words &words, Likeness likeness) {
  server_.send(words);
  expected_.push_back({words, on_store(words), likeness});
}

// For the server only.
void StoreFidelity::control(const Words &words) {
  server_.send(words);
  expected_.push_back({words, Value::status("OK"), Likeness::kExact});
}

void StoreFidelity::catch_up() {
  for (const Expected &expected : expected_) {
    const Value theirs = server_.receive();
    const bool is_equal = is_alike(expected.reply, theirs, expected.likeness);
    if (options_.replay >= 0) {
      std::printf("  %s\n    store:  %s\n", shown(expected.words).c_str(),
                  shown(expected.reply).c_str());
      if (!is_equal || expected.reply != theirs)
        std::printf("    server: %s\n", shown(theirs).c_str());
    }
    if (!is_equal && is_equal_) differ(expected.words, expected.reply, theirs);
  }
  expected_.clear();
}

void StoreFidelity::differ(const Words &words, const Value &ours, const Value &theirs) {
  is_equal_ = false;
  std::printf(
      "difference: seed %llu, sequence %lld, about step %lld, at %lld us\n  %s\n"
      "    store:  %s\n    server: %s\n"
      "replay: store_fidelity --socket %s --clock %s --seed %llu --steps %lld --replay %lld\n",
      static_cast<unsigned long long>(options_.seed), static_cast<long long>(number_),
      static_cast<long long>(step_), static_cast<long long>(now_us_), shown(words).c_str(),
      shown(ours).c_str(), shown(theirs).c_str(), options_.socket.c_str(), options_.clock.c_str(),
      static_cast<unsigned long long>(options_.seed), static_cast<long long>(options_.steps),
      static_cast<long long>(number_));
}

void StoreFidelity::carry_out(const Step &step) {
  step_++;
  switch (step.kind) {
    case Step::Kind::kTime:
      catch_up();
      if (options_.replay >= 0) {
        std::printf("  at %+lld us\n", static_cast<long long>(step.number - kBegin_us));
      }
      now_us_ = step.number;
      server_.set_time(now_us_);
      break;
    case Step::Kind::kMemory:
      control({"CONFIG", "SET", "maxmemory", step.number ? "0" : "1"});
      store_.set_out_of_memory(!step.number && options_.defect != "memory");
      break;
    case Step::Kind::kPublish:
      control({"AUTH", step.number ? "default" : "limited", "any"});
      store_.set_may_publish(step.number != 0 || options_.defect == "rights");
      break;
    case Step::Kind::kExpire:
      expire();
      break;
    case Step::Kind::kWalk:
      walk(step);
      break;
    case Step::Kind::kCommand:
      if (step.words[0] == "SCRIPT" && step.words[1] == "FLUSH") has_loaded_ = false;
      on_both(step.words, step.likeness);
      break;
  }
}

// The server has no command that expires keys: it expires a key when that is read.
void StoreFidelity::expire() {
  Words words = {"EXISTS"};
  for (const std::string &key : keys()) words.push_back(key);
  store_.expire(now_us_);
  on_both(words, Likeness::kExact);
}

void StoreFidelity::walk(const Step &step) {
  expire();  // now, because servers differ in the expired keys that a walk notices
  catch_up();
  Value found[2];
  for (const bool is_real : {false, true}) {
    Words words = step.words;
    std::string &cursor = words[static_cast<size_t>(step.number)];
    std::set<std::string> keys;
    for (int steps = 0;; steps++) {
      const Value reply = is_real ? server_.ask(words) : on_store(words);
      if (reply.items.size() != 2 || steps > 1000) {
        found[is_real] = reply;
        break;
      }
      for (const Value &key : reply.items[1].items) keys.insert(key.text);
      cursor = reply.items[0].text;
      if (cursor != "0") continue;
      found[is_real] = Value::list({});
      for (const std::string &key : keys) found[is_real].items.push_back(Value::of(key));
      break;
    }
  }
  if (!is_same(found[0], found[1], step.likeness) && is_equal_)
    differ(step.words, found[0], found[1]);
}

void StoreFidelity::compare_keys() {
  for (const std::string &key : keys()) {
    on_both({"TYPE", key}, Likeness::kExact);
    on_both({"PTTL", key}, Likeness::kExact);
    on_both({"GET", key}, Likeness::kExact);
    on_both({"ZRANGE", key, "0", "-1", "WITHSCORES"}, Likeness::kScores);
    on_both({"HGETALL", key}, Likeness::kPairs);
  }
  server_.send(Words{"DBSIZE"});
  expected_.push_back(
      {{"DBSIZE"}, Value::of(static_cast<int64_t>(store_.keys().size())), Likeness::kExact});
  catch_up();
  const auto sent = std::exchange(messages_, {});
  const auto received = server_.messages();
  if (sent == received || !is_equal_) return;
  Value ours = Value::list({}), theirs = Value::list({});
  for (const Message &message : sent) ours.items.push_back(Value::of(message.text));
  for (const Message &message : received) theirs.items.push_back(Value::of(message.text));
  differ({"(messages)"}, ours, theirs);
}

bool parse(int argc, char **argv, Options &options) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i], value = argv[i + 1];
    const std::map<std::string, std::string *> texts = {
        {"--socket", &options.socket}, {"--clock", &options.clock}, {"--defect", &options.defect}};
    const std::map<std::string, int64_t *> numbers = {{"--sequences", &options.sequences},
                                                      {"--steps", &options.steps},
                                                      {"--replay", &options.replay}};
    if (const auto text = texts.find(name); text != texts.end()) {
      *text->second = value;
    } else if (const auto number = numbers.find(name); number != numbers.end()) {
      *number->second = std::atoll(value.c_str());
    } else if (name == "--seed") {
      options.seed = std::strtoull(value.c_str(), nullptr, 10);
    } else {
      return false;
    }
  }
  return argc % 2 == 1 && !options.socket.empty() && !options.clock.empty();
}

int run(const Options &options) {
  StoreFidelity store_fidelity(options);
  if (options.replay >= 0) return store_fidelity.run(options.replay) ? 0 : 1;
  for (int64_t number = 0; number < options.sequences; number++) {
    if (!store_fidelity.run(number)) return 1;
  }
  std::printf("%lld sequences of %lld steps, no difference\n",
              static_cast<long long>(options.sequences), static_cast<long long>(options.steps));
  return 0;
}

}  // namespace

}  // namespace redlatch::sim

int main(int argc, char **argv) {
  redlatch::sim::Options options;
  if (!redlatch::sim::parse(argc, argv, options)) {
    std::fprintf(stderr,
                 "usage: store_fidelity --socket PATH --clock FILE [--seed N] [--sequences N]\n"
                 "    [--steps N] [--replay NUMBER] [--defect NAME]\n");
    return 2;
  }
  try {
    return redlatch::sim::run(options);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "store_fidelity: %s\n", error.what());
    return 3;
  }
}

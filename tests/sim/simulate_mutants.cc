// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// simulate_mutants: shows that the simulator finds defects. For each mutant it runs the seed that
// is known to find it, then others, until a rule is broken; the same run without the defect must
// break none. Prints a line for each mutant. Exit 0: all were found; 1: not; 2: it cannot say.
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "defect.h"
#include "mutants.h"
#include "workers.h"
#include "world.h"

namespace redlatch::sim {

namespace {

constexpr Nanos kMinute = 60'000 * kMs;

constexpr char kUsage[] =
    "usage: simulate_mutants --all | --mutant NAME | --list  [--seeds 10000] [--from SEED]\n"
    "                        [--minutes 2] [--jobs N] [--trace] [--healthy]\n"
    "Without --from the seed that is known to find a mutant is the first. --healthy runs what "
    "looks\n"
    "for it with the defect switched off.\n";

struct Options {
  const Mutant *only = nullptr;
  bool is_all = false;
  bool is_list = false;
  bool is_traced = false;
  bool is_healthy = false;
  uint64_t from = 0;
  uint64_t seeds = 10'000;
  int64_t minutes = 2;
  int jobs = static_cast<int>(std::max(std::thread::hardware_concurrency(), 1U));
};

bool read(int argc, char **argv, Options &options) {
  for (int i = 1; i < argc; i++) {
    const std::string_view word = argv[i];
    if (word == "--all") {
      options.is_all = true;
    } else if (word == "--list") {
      options.is_list = true;
    } else if (word == "--healthy") {
      options.is_healthy = true;
    } else if (word == "--trace") {
      options.is_traced = true;
    } else if (++i == argc) {
      return false;
    } else if (word == "--mutant") {
      options.only = mutant_of(argv[i]);
      if (options.only == nullptr) fprintf(stderr, "no mutant is called '%s'\n", argv[i]);
      if (options.only == nullptr) return false;
    } else if (word == "--from") {
      options.from = strtoull(argv[i], nullptr, 10);
    } else if (word == "--seeds") {
      options.seeds = strtoull(argv[i], nullptr, 10);
    } else if (word == "--minutes") {
      options.minutes = strtoll(argv[i], nullptr, 10);
    } else if (word == "--jobs") {
      options.jobs = static_cast<int>(std::clamp(strtol(argv[i], nullptr, 10), 1L, 1000L));
    } else {
      return false;
    }
  }
  return options.is_list || options.is_all != (options.only != nullptr);
}

Result broken(std::string rule, std::string how) {
  Result result;
  result.is_broken = true;
  result.rule = std::move(rule);
  result.how = std::move(how);
  return result;
}

Result run(const Mutant &mutant, bool is_on, uint64_t seed, const Options &options) {
  const Plan plan = Plan::of(seed, options.minutes * kMinute, mutant.scenario_of(seed));
  const Mutant *active = is_on ? &mutant : nullptr;
  switch_on(active);
  FILE *words = is_on != options.is_healthy && options.is_traced ? stdout : nullptr;
  try {
    return World(plan, active, words).run();
  } catch (const Endless &) {
    return broken("every call of the engine ends", "one goes on for ever");
  } catch (const std::exception &error) {
    return broken("no call of the engine throws", error.what());
  }
}

// Run a seed in a child process, because some defects use memory after its end, which may crash the
// process. Only the broken rule comes back.
Result run_apart(const Mutant &mutant, bool is_on, uint64_t seed, const Options &options) {
  const auto child = start_child([&](FILE *out) {
    // An assert that finds the defect is a result, and not a broken rule without one.
    if (is_on && freopen("/dev/null", "w", stderr) == nullptr) abort();
    const Result result = run(mutant, is_on, seed, options);
    if (result.is_broken) fprintf(out, "%s\n%s", result.rule.c_str(), result.how.c_str());
  });
  if (!child) return broken("there is a process for each run", strerror(errno));
  std::string told;
  std::array<char, 4096> part{};
  for (size_t n; (n = fread(part.data(), 1, part.size(), child->in)) > 0;) {
    told.append(part.data(), n);
  }
  fclose(child->in);
  int status = 0;
  waitpid(child->pid, &status, 0);
  if (WIFSIGNALED(status)) {
    return broken("no call of the engine ends the process", strsignal(WTERMSIG(status)));
  }
  if (told.empty()) return {};
  const size_t end = told.find('\n');
  return broken(told.substr(0, end), told.substr(end + 1));
}

// Search for a seed that finds the mutant, and write a line about it.
bool find(const Mutant &mutant, const Options &options, FILE *out) {
  const uint64_t first = options.from > 0 ? options.from : 1;
  for (uint64_t tried = 0; tried < options.seeds; tried++) {
    const bool is_known = tried == 0 && options.from == 0;
    const uint64_t seed = is_known ? mutant.seed : first + tried;
    const Result result = run_apart(mutant, !options.is_healthy, seed, options);
    if (!result.is_broken) continue;
    if (const Result healthy = run_apart(mutant, false, seed, options); healthy.is_broken) {
      fprintf(stderr, "seed %llu, %s, breaks a rule without a mutant: %s: %s\n",
              static_cast<unsigned long long>(seed),
              std::string(name_of(mutant.scenario_of(seed))).c_str(), healthy.rule.c_str(),
              healthy.how.c_str());
      continue;
    }
    fprintf(out, "%-18s %-52s %6llu %-8s %5llu\n", std::string(mutant.name).c_str(),
            result.rule.c_str(), static_cast<unsigned long long>(seed),
            std::string(name_of(mutant.scenario_of(seed))).c_str(),
            static_cast<unsigned long long>(tried + 1));
    return true;
  }
  fprintf(out, "%-18s NOT FOUND by %llu runs\n", std::string(mutant.name).c_str(),
          static_cast<unsigned long long>(options.seeds));
  return false;
}

// Each line of find() begins with the mutant's number and whether it was found; the last is "end".
void work(const std::vector<const Mutant *> &wanted, const Options &options, Begun &begun,
          FILE *out) {
  for (uint64_t i = begun++; i < wanted.size(); i = begun++) {
    char *line = nullptr;
    size_t size = 0;
    FILE *text = open_memstream(&line, &size);
    const bool is_found = find(*wanted[i], options, text);
    fclose(text);
    fprintf(out, "%llu %d %s", static_cast<unsigned long long>(i), is_found ? 1 : 0, line);
    fflush(out);
    free(line);
  }
  fputs("end\n", out);
}

struct Row {
  bool is_found = false;
  std::string line;
};

bool read_rows(FILE *in, std::vector<Row> &rows) {
  char *line = nullptr;
  size_t capacity = 0;
  bool is_complete = false;
  while (getline(&line, &capacity, in) > 0) {
    unsigned long long i = 0;
    int is_found = 0, at = 0;
    is_complete = std::string_view(line) == "end\n";
    if (sscanf(line, "%llu %d %n", &i, &is_found, &at) == 2) rows[i] = {is_found != 0, line + at};
  }
  free(line);
  return is_complete;
}

// @return whether all were found.
bool find_all(const Options &options) {
  std::vector<const Mutant *> wanted;
  for (const Mutant &mutant : mutants()) {
    if (options.is_all || options.only == &mutant) wanted.push_back(&mutant);
  }
  std::vector<Row> rows(wanted.size());
  const auto troubles = run_workers(
      options.jobs, [&](Begun &begun, FILE *out) { work(wanted, options, begun, out); },
      [&](FILE *in) { return read_rows(in, rows); });
  for (const std::string &trouble : troubles) fprintf(stderr, "%s\n", trouble.c_str());
  bool is_found = troubles.empty();
  printf("%-18s %-52s %6s %-8s %5s\n", "mutant", "the rule that it broke", "seed", "scenario",
         "runs");
  for (const Row &row : rows) {
    fputs(row.line.c_str(), stdout);
    is_found = is_found && row.is_found;
  }
  return is_found;
}

}  // namespace

}  // namespace redlatch::sim

int main(int argc, char **argv) {
  using namespace redlatch::sim;
  setvbuf(stdout, nullptr, _IOLBF, 0);
  Options options;
  if (!read(argc, argv, options)) {
    fputs(kUsage, stderr);
    return 2;
  }
  if (const Mutant *outdated = outdated_mutant()) {
    fprintf(stderr, "simulate_mutants: %s: no script holds the text that it replaces:\n%s\n",
            std::string(outdated->name).c_str(), std::string(outdated->before).c_str());
    return 2;
  }
  if (options.is_list) {
    for (const Mutant &mutant : mutants()) {
      printf("%-18s %s\n", std::string(mutant.name).c_str(), std::string(mutant.what).c_str());
    }
    return 0;
  }
  return find_all(options) ? 0 : 1;
}

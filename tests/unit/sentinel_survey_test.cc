// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Goal: a survey asks every sentinel, ends within its time, and each of its findings is as good or
// bad as the sentinels are.
// Method: sentinels that answer by replies made by hand.
#include "sentinel/survey.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lock_client_world.h"

namespace redlatch::sentinel {
namespace {

constexpr Nanos kSecond = 1000 * kMs;
const HostPort kA{"10.0.0.1", "6379"}, kB{"10.0.0.2", "6379"};

MadeReply pair(const std::string &name, const std::string &value) {
  return MadeReply::list(MadeReply::text(name), MadeReply::text(value));
}

struct One {
  HostPort address;
  std::string id;
  HostPort primary = kA;
  int quorum = 2;
  int other_count = 2;
  bool answers = true;
  bool is_ignorant = false;
};

class SurveyTest : public ::testing::Test {
 protected:
  SurveyTest() {
    settings_.sentinel.primary_name = "main";
    settings_.connect_timeout = 3 * kSecond;
    for (const char *name : {"s1", "s2", "s3"}) all_.push_back({{name, "26379"}, name});
    for (const One &one : all_) settings_.sentinel.addresses.push_back(one.address);
  }

  const One &one_at(const HostPort &address) const {
    for (const One &one : all_) {
      if (one.address == address) return one;
    }
    ADD_FAILURE() << "nothing is at " << address.text();
    return all_.front();
  }

  // Asks all; `others` are those that the client has heard of.
  void run(const std::vector<HostPort> &others = {}) {
    const Nanos end = now_ + settings_.connect_timeout;
    Survey survey(settings_, others, now_, end);
    asked_.clear();
    while (!survey.is_over()) {
      ASSERT_LE(survey.limit(), end);
      const HostPort address{survey.sentinel().host, survey.sentinel().port};
      asked_.push_back(address.text());
      const One &one = one_at(address);
      if (one.answers) {
        answer(survey, one);
      } else {
        now_ = survey.limit();
        survey.on_failed(failure(Status::kUnavailable, "sentinel " + address.text() + ": gone"),
                         now_);
      }
    }
    ASSERT_LE(now_, end);
    findings_ = survey.findings();
    ASSERT_EQ(findings_.size(), 3u);
  }

  void answer(Survey &survey, const One &one) {
    survey.on_dialled([](std::span<const std::string_view>) {});
    ASSERT_EQ(survey.awaited_count(), 5u);
    survey.on_reply(pair("mode", "sentinel").get(), now_);
    survey.on_reply(
        one.is_ignorant ? MadeReply().get() : pair(one.primary.host, one.primary.port).get(), now_);
    survey.on_reply(MadeReply::list().get(), now_);
    survey.on_reply(
        MadeReply::list(MadeReply::text("quorum"), MadeReply::text(std::to_string(one.quorum)),
                        MadeReply::text("num-other-sentinels"),
                        MadeReply::text(std::to_string(one.other_count)))
            .get(),
        now_);
    survey.on_reply(MadeReply::text(one.id).get(), now_);
  }

  void expect(size_t index, FindingLevel level, const std::string &text) const {
    const Finding &finding = findings_[index];
    EXPECT_EQ(finding.level, level) << finding.id << ": " << finding.seen;
    EXPECT_NE(finding.seen.find(text), std::string::npos) << finding.seen;
    EXPECT_EQ(finding.is_bad(), !finding.advice.empty()) << finding.id;
  }

  Settings settings_;
  Nanos now_ = 100 * kSecond;
  std::vector<One> all_;
  std::vector<std::string> asked_;
  std::vector<Finding> findings_;
};

constexpr size_t kAnswering = 0, kNamed = 1, kQuorum = 2;

TEST_F(SurveyTest, three_sentinels_that_agree_are_ok) {
  run();
  expect(kAnswering, FindingLevel::kOk, "3 of 3 sentinels answer");
  expect(kNamed, FindingLevel::kOk, "10.0.0.1:6379");
  expect(kQuorum, FindingLevel::kOk, "2 of 3 sentinels");
  EXPECT_EQ(asked_.size(), 3u) << "also when most agree";
}

TEST_F(SurveyTest, one_silent_sentinel_is_a_warning_and_the_others_are_asked) {
  all_[0].answers = false;
  run();
  expect(kAnswering, FindingLevel::kWarn, "2 of 3 sentinels answer: sentinel s1:26379: gone");
  expect(kNamed, FindingLevel::kOk, "");
  expect(kQuorum, FindingLevel::kOk, "");
  EXPECT_EQ(asked_.size(), 3u);
}

TEST_F(SurveyTest, one_answer_of_three_is_a_warning_that_no_failover_is_possible) {
  all_[0].answers = all_[1].answers = false;
  run();
  expect(kAnswering, FindingLevel::kWarn, "1 of 3");
  expect(kQuorum, FindingLevel::kWarn, "no failover");
}

TEST_F(SurveyTest, without_any_sentinel_the_other_findings_are_unknown) {
  for (One &one : all_) one.answers = false;
  run();
  expect(kAnswering, FindingLevel::kFail, "0 of 3");
  expect(kNamed, FindingLevel::kUnknown, "");
  expect(kQuorum, FindingLevel::kUnknown, "");
}

TEST_F(SurveyTest, fewer_than_three_sentinels_are_a_warning) {
  all_.resize(2);
  settings_.sentinel.addresses.resize(2);
  for (One &one : all_) one.other_count = 1;
  run();
  expect(kAnswering, FindingLevel::kWarn, "2 of 2 sentinels answer: without one");
  expect(kQuorum, FindingLevel::kOk, "2 of 2");
}

TEST_F(SurveyTest, a_sentinel_that_names_another_primary_is_found) {
  all_[1].primary = kB;
  run();
  expect(kNamed, FindingLevel::kWarn, "s2:26379 names 10.0.0.2:6379");
  all_[1].primary = kA;
  all_[2].is_ignorant = true;
  run();
  expect(kNamed, FindingLevel::kWarn, "s3:26379 does not know 'main'");
}

TEST_F(SurveyTest, a_quorum_too_high_for_a_failover_is_found) {
  for (One &one : all_) one.quorum = 3;
  run();
  expect(kQuorum, FindingLevel::kWarn, "without one of them there is no failover");
  for (One &one : all_) one.quorum = 4;
  run();
  expect(kQuorum, FindingLevel::kWarn, "4 of 3 sentinels: there is no failover");
}

TEST_F(SurveyTest, sentinels_with_different_quorums_or_counts_are_found) {
  all_[2].quorum = 1;
  run();
  expect(kQuorum, FindingLevel::kWarn, "2 of 3 sentinels at s1:26379, 1 of 3 sentinels at s3");
  all_[2].quorum = 2;
  all_[2].other_count = 3;  // one that is gone
  run();
  expect(kQuorum, FindingLevel::kWarn, "2 of 4 sentinels at s3");
}

TEST_F(SurveyTest, a_sentinel_with_two_addresses_counts_once) {
  One again = all_[0];
  again.address = {"10.1.0.1", "26379"};
  all_.push_back(again);
  run({again.address});
  EXPECT_EQ(asked_.size(), 4u);
  expect(kAnswering, FindingLevel::kOk, "3 of 3 sentinels answer");
}

TEST_F(SurveyTest, refused_questions_make_the_quorum_unknown) {
  for (One &one : all_) one.quorum = -1;
  run();
  expect(kQuorum, FindingLevel::kUnknown, "");
}

}  // namespace
}  // namespace redlatch::sentinel

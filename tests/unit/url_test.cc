// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Goal: no message and no shown URL holds a secret, however the URL is malformed.
// Method: a secret is planted at each place of many URLs, behind each separator.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "config/options.h"
#include "config/url.h"

namespace redlatch::config {

constexpr std::string_view kCanary = "S3cretC4nary";

constexpr std::array<std::string_view, 29> kUrls = {"",
                                                    "host",
                                                    "host:6379",
                                                    "redis:host",
                                                    "redis:/host",
                                                    "redsi://host",
                                                    "redis://",
                                                    "redis://host",
                                                    "redis://host:6379",
                                                    "redis://host:6379/0",
                                                    "redis://[::1]",
                                                    "redis://[::1]:7/2",
                                                    "redis://[::1",
                                                    "redis://host?db=1",
                                                    "redis://host?command_timeout=2s&protocol=3",
                                                    "redis://host?namespace=app&holder=web",
                                                    "redis://host?client_name=a&password=b",
                                                    "redis://user:word@host:1/1?db=2",
                                                    "rediss://host?tls_ca=/x/ca&tls_verify=none",
                                                    "rediss://host?tls_sni=name&tls_key=/x/key",
                                                    "unix:///run/socket",
                                                    "unix:///run/socket?db=1",
                                                    "embedded://",
                                                    "embedded:///folder?server=/bin/server",
                                                    "redis-sentinel://u:p@a:1,[::1]:2/main/0",
                                                    "redis+sentinel://h?sentinel_tls=yes",
                                                    "redis-sentinel://h/m?sentinel_password=b&db=1",
                                                    "redis+cluster://u:p@a:1,[::1]:2/0",
                                                    "rediss+cluster://h?cluster_hosts=h"};
constexpr std::array<std::string_view, 13> kSeparators = {"&",  ";", ",",  "#",  " ", "|",  "\t",
                                                          "\n", "?", "&&", ";;", "%", "=/&"};
constexpr std::array<std::string_view, 16> kWords = {
    "password=*",   "pasword=*",   "pass=*",       "PASSWORD=*", "password:*",
    "auth=*",       "*",           "*@",           "u:*@h",      "password%3D*",
    "password=x@*", "pasword=x@*", "password=#@*", "user=x@y@*", "x@*",
    "/x@*"};

// A sanitizer looks for memory errors, and makes each case slow: a part of them is enough for it.
#ifdef __SANITIZE_ADDRESS__
constexpr size_t kEvery = 7;  // so each word and separator has its turn
#else
constexpr size_t kEvery = 1;
#endif

std::string planted(std::string_view url, size_t place, std::string_view separator,
                    std::string_view word) {
  std::string text(word);
  text.replace(text.find('*'), 1, kCanary);
  std::string result(url);
  return result.insert(place, std::string(separator) + text);
}

// Between the sentinels of a URL, or the nodes, what follows a comma is another host.
bool makes_host(std::string_view url, size_t place, std::string_view separator) {
  const size_t begin = url.find("://");
  const std::string_view scheme = url.substr(0, begin);
  const bool has_list = scheme.ends_with("sentinel") || scheme.ends_with("cluster");
  if (separator != "," || !has_list) return false;
  const size_t hosts = begin + std::string_view("://").size();
  return place >= hosts && place <= std::min(url.find_first_of("/?", hosts), url.size());
}

// What follows the last '@' before the path is the host.
bool follows_user(std::string_view url) {
  const size_t at = url.find('@');
  const size_t scheme = url.find("://");
  return scheme < at && at < url.find_first_of("/?#", scheme + 3) && at < url.find(kCanary);
}

bool has_canary(std::string_view text) { return text.find(kCanary) != std::string_view::npos; }

std::vector<std::string> all_planted() {
  std::vector<std::string> all;
  size_t count = 0;
  for (const auto url : kUrls) {
    for (size_t place = 0; place <= url.size(); place++) {
      for (const auto separator : kSeparators) {
        if (makes_host(url, place, separator)) continue;
        for (const auto word : kWords) {
          if (count++ % kEvery != 0) continue;
          std::string text = planted(url, place, separator, word);
          if (!word.ends_with("@*") || !follows_user(text)) all.push_back(std::move(text));
        }
      }
    }
  }
  return all;
}

TEST(UrlTest, planted_secrets_are_never_shown) {
  size_t refused_count = 0;
  size_t opened_count = 0;
  for (const std::string &url : all_planted()) {
    EXPECT_FALSE(has_canary(redact_url(url))) << url;
    Settings settings;
    const auto outcome = Options().resolve(url, settings);
    EXPECT_FALSE(has_canary(outcome.message)) << url << ": " << outcome.message;
    (outcome.ok() ? opened_count : refused_count)++;
    if (!outcome.ok()) continue;
    // Messages name these.
    EXPECT_FALSE(has_canary(settings.address() + settings.host)) << url;
    for (const auto *name : {"url", "namespace", "holder", "client_name", "server", "tls_sni"}) {
      EXPECT_FALSE(has_canary(option_of(settings, name))) << url << ": " << name;
    }
  }
  EXPECT_GT(refused_count, 80'000U / kEvery);
  EXPECT_GT(opened_count, 800U / kEvery) << "nothing was planted where a password may be";
}

TEST(UrlTest, planted_secrets_in_urls_of_a_redlock_are_never_shown) {
  size_t place = 0;
  for (const std::string &url : all_planted()) {
    std::vector<std::string> parts = {"redis://a", "redis://b"};
    parts.insert(parts.begin() + static_cast<ptrdiff_t>(place), url);
    place = (place + 1) % 3;  // each word comes to each place, because the words are no multiple
    const std::string urls = parts[0] + "\n" + parts[1] + " " + parts[2];
    std::vector<Settings> nodes;
    QuorumSettings quorum;
    const auto outcome = Options().resolve(urls, nodes, quorum);
    EXPECT_FALSE(has_canary(outcome.message)) << urls << ": " << outcome.message;
  }
}
static_assert(kWords.size() % 3 != 0 && kSeparators.size() % 3 != 0);

TEST(UrlTest, text_that_may_be_part_of_a_password_is_not_shown) {
  for (const std::string url : {"redis://h?password=ab&S3cretC4nary=x",
                                "redis://h:1:S3cretC4nary",
                                "redis://h?password=ab&S3cretC4nary",
                                "redis://[::1]S3cretC4nary:1",
                                "redis://u:ab?namespace=S3cretC4nary@h",
                                "S3cretC4nary",
                                "redis://u:ab@S3cretC4nary?holder=x@h",
                                "redis://S3cretC4nary@h:0",
                                "redis://u:1/S3cretC4nary",
                                "redis://h/0S3cretC4nary",
                                "redis://h?db=S3cretC4nary",
                                "redis://h?password_file=S3cretC4nary",
                                "rediss://h?tls_key=-----BEGIN%20KEY-----S3cretC4nary",
                                "redis://h&password=x@S3cretC4nary",
                                "redis://h:1;pasword=x@S3cretC4nary:1",
                                "redis-sentinel://h,sentinel_password=x@S3cretC4nary/m",
                                "redis://password=x@S3cretC4nary",
                                "redis://u:S3cretC4nary",
                                "redis://ab;cd:S3cretC4nary@h:0",
                                "redsi://u:S3cretC4nary@h",
                                "redis://u:S3cretC4nary@h?bad=1",
                                "u:S3cretC4nary@h",
                                "redis://u:12/S3cretC4nary@localhost:1",
                                "redis://u/:S3cretC4nary@h:1/2",
                                "redis://u:S3cretC4naryh:1/2",
                                "S3cretC4nary@h:0",
                                "S3cretC4nary:x@h",
                                "unix://:S3cretC4naryf/tmp/x",
                                "valkey://h/0namespace=x&password=S3cretC4nary",
                                "embedded://u:S3cretC4nary@/d",
                                "embedded:///d?password=S3cretC4nary",
                                "embedded://u:S3cretC4nary"}) {
    Settings settings;
    const auto outcome = Options().resolve(url, settings);
    EXPECT_EQ(outcome.status, Status::kInvalid) << url;
    EXPECT_FALSE(has_canary(outcome.message)) << url << ": " << outcome.message;
    EXPECT_FALSE(has_canary(redact_url(url))) << redact_url(url);
  }
}

TEST(UrlTest, well_formed_urls_are_shown_without_their_secrets) {
  struct Row {
    const char *url;
    const char *shown;
  };
  for (const Row &row : {
           Row{"redis://h.example:1/2?command_timeout=1s",
               "redis://h.example:1/2?command_timeout=1s"},
           Row{"redis://user:pw@h", "redis://user:***@h"},
           Row{"redis://:pw@h", "redis://:***@h"},
           Row{"redis://pw:@h", "redis://***@h"},
           Row{"redis://:p@w@h", "redis://:***@h"},
           Row{"redis://:p/w@h", "redis://***"},
           Row{"redis://u:a=b&c=d==@h", "redis://u:***@h"},
           Row{"redis://h&password=x@S", "redis://***"},
           Row{"redis://db1/0?password=hunter@2secret", "redis://***"},
           Row{"redis://h?holder=x&password=#@S", "redis://***"},
           Row{"redis://127.0.0.1/pass@word", "redis://***"},
           Row{"unix:///run/redis@1/r.sock?db=1", "unix:///run/redis@1/r.sock?db=1"},
           Row{"unix:///pw@/run/r.sock", "unix://***"},
           Row{"redis://:pw?canary=x", "redis://***"},
           Row{"redis://[fe80::1%25eth0]:1", "redis://[fe80::1%25eth0]:1"},
           Row{"redis://h?user=u&password=x&db=1", "redis://h?user=***&password=***&db=1"},
           Row{"redis://h?namespace=a:b/c", "redis://h?namespace=a:b/c"},
           Row{"rediss://h?tls_ca=/e/ca.pem", "rediss://h?tls_ca=/e/ca.pem"},
           Row{"unix:///run/r.sock?db=4", "unix:///run/r.sock?db=4"},
           Row{"embedded://", "embedded://"},
           Row{"redis://h?nonsense=1&other=x", "redis://h?nonsense=***&***"},
           Row{"redis://h?nonsense=a;b=c", "redis://h?***"},
           Row{"redis://h?db=1&password=a&rest=x", "redis://h?db=1&password=***&***"},
           Row{"redis://h?db&rest=x", "redis://h?***&***"},
           Row{"redis://ho st", "redis://***"},
           Row{"redis://h#x", "redis://h#***"},
           Row{"h:1", "***"},
       }) {
    EXPECT_EQ(redact_url(row.url), row.shown) << row.url;
  }
}

TEST(UrlTest, values_with_separators_are_not_quoted_in_messages) {
  Options options;
  EXPECT_NE(options.set("command_timeout", "soon").message.find("(got 'soon')"), std::string::npos);
  for (const char *name :
       {"command_timeout", "db", "namespace", "protocol", "client_name", "server", "tls_ca",
        "tls_sni", "tls_verify", "password_file", "durable"}) {
    for (const std::string separator : {";", ",", "&", " ", "{"}) {
      const std::string value = "1" + separator + "password=" + std::string(kCanary);
      const auto outcome = options.set(name, value);
      EXPECT_FALSE(has_canary(outcome.message)) << outcome.message;
    }
  }
}

TEST(UrlTest, a_message_about_an_invalid_url_is_valid_utf8) {
  Settings settings;
  const auto outcome = parse_url("redis://h?client_name=\xff", settings);
  EXPECT_NE(outcome.message.find("(in redis://h?client_name=\xef\xbf\xbd)"), std::string::npos)
      << outcome.message;
}

TEST(UrlTest, an_oversized_url_is_refused_unparsed) {
  std::string url = "redis://h?";
  while (url.size() < 1'000'000) url += "a=1&";
  Settings settings;
  const auto outcome = parse_url(url, settings);
  EXPECT_EQ(outcome.message, "the URL must be at most 8192 bytes (got " +
                                 std::to_string(url.size()) + " bytes) in redis://***");
  EXPECT_EQ(redact_url(url), "redis://***");
}

}  // namespace redlatch::config

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Goal: URLs and options mean what they say, and errors name the input. That they have no password
// is in url_test.cc.
// Method: tables.
#include "config/options.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

namespace redlatch::config {

Settings parsed(std::string_view url) {
  Settings settings;
  const auto outcome = Options().resolve(url, settings);
  EXPECT_TRUE(outcome.ok()) << url << ": " << outcome.message;
  return settings;
}

struct Refused {
  std::string url;
  const char *says;
};

void expect_refused(std::initializer_list<Refused> rows) {
  for (const auto &[url, says] : rows) {
    Settings settings;
    const auto outcome = Options().resolve(url, settings);
    EXPECT_EQ(outcome.status, Status::kInvalid) << url;
    EXPECT_NE(outcome.message.find(says), std::string::npos) << url << ": " << outcome.message;
  }
}

// .. of several servers.
void expect_refused_nodes(std::initializer_list<Refused> rows) {
  for (const auto &[urls, says] : rows) {
    std::vector<Settings> nodes;
    QuorumSettings quorum;
    const auto outcome = Options().resolve(urls, nodes, quorum);
    EXPECT_EQ(outcome.status, Status::kInvalid) << urls;
    EXPECT_NE(outcome.message.find(says), std::string::npos) << urls << ": " << outcome.message;
  }
}

TEST(OptionsTest, urls_give_server_user_and_options) {
  EXPECT_EQ(parsed("redis://localhost").port, "6379");
  EXPECT_EQ(parsed("valkey://h:7000/3").database, 3);
  const Settings full = parsed("redis://us%40er:p%3Aw@h:1/2?command_timeout=500ms&namespace=a%3A");
  EXPECT_EQ(full.user, "us@er");
  EXPECT_EQ(full.password, "p:w");
  EXPECT_EQ(full.command_timeout, 500 * kMs);
  EXPECT_EQ(full.name_space, "a:");
  EXPECT_EQ(parsed("redis://:secret@h").password, "secret");
  EXPECT_EQ(parsed("redis://[::1]:7000").host, "::1");
  EXPECT_EQ(parsed("unix:///run/r.sock?db=4").database, 4);
  EXPECT_EQ(parsed("unix://u:p@/run/r.sock").socket_path, "/run/r.sock");
  EXPECT_EQ(parsed("redis://h?connect_timeout=3s").connect_timeout, 3'000 * kMs);
}

TEST(OptionsTest, embedded_urls_give_a_folder) {
  const Settings own = parsed("embedded://");
  EXPECT_EQ(own.folder, "/tmp/redlatch-" + std::to_string(geteuid()));
  EXPECT_EQ(own.socket_path, own.folder + "/socket");
  EXPECT_EQ(own.address(), "embedded://" + own.folder);
  EXPECT_EQ(parsed("embedded:///").folder, "/");
  EXPECT_EQ(parsed("embedded:///a/b%20c//").folder, "/a/b c");
  EXPECT_EQ(parsed("embedded://?command_timeout=1s").folder, own.folder);
  EXPECT_EQ(parsed("embedded:///a?server=/usr/bin/x&db=3").server, "/usr/bin/x");
  EXPECT_TRUE(parsed("unix:///a").folder.empty());
}

TEST(OptionsTest, a_folder_too_long_for_a_socket_path_is_invalid) {
  const std::string longest = "/" + std::string(99, 'x');
  EXPECT_EQ(parsed("embedded://" + longest).socket_path.size(), 107U);
  Settings settings;
  const auto outcome = Options().resolve("embedded://" + longest + "y", settings);
  EXPECT_EQ(outcome.status, Status::kInvalid);
  EXPECT_NE(outcome.message.find("must be at most 100 bytes"), std::string::npos)
      << outcome.message;
}

TEST(OptionsTest, the_scheme_turns_on_tls_and_options_configure_it) {
  Settings settings;
  ASSERT_TRUE(Options().resolve("redis://h", settings).ok());
  EXPECT_FALSE(settings.tls.is_on);
  ASSERT_TRUE(Options().resolve("valkeys://h", settings).ok());
  EXPECT_TRUE(settings.tls.is_on);
  EXPECT_EQ(settings.tls.verify, TlsSettings::Verify::kFull);
  EXPECT_EQ(settings.address(), "rediss://h:6379");
  EXPECT_EQ(option_of(settings, "tls_verify"), "full");

  Options options;
  ASSERT_TRUE(options.set("tls_sni", "inside.example").ok());
  const std::string url =
      "rediss://h?tls_ca=.&tls_cert=/proc/self/exe&tls_key=/proc/version&tls_verify=ca";
  const auto outcome = options.resolve(url, settings);
  ASSERT_TRUE(outcome.ok()) << outcome.message;
  EXPECT_EQ(settings.tls.ca.front(), '/') << "the working directory may change";
  EXPECT_EQ(option_of(settings, "tls_cert"), "/proc/self/exe");
  EXPECT_EQ(option_of(settings, "tls_key"), "/proc/version");
  EXPECT_EQ(option_of(settings, "tls_sni"), "inside.example");
  EXPECT_EQ(option_of(settings, "tls_verify"), "ca");
  EXPECT_EQ(option_of(settings, "url"), url);

  std::vector<Settings> nodes;
  QuorumSettings quorum;
  ASSERT_TRUE(options.resolve("rediss://a redis://b unix:///c", nodes, quorum).ok());
  EXPECT_EQ(nodes[0].tls.sni, "inside.example");
  EXPECT_EQ(nodes[1].tls.sni, "") << "by name is for those that have TLS";
  EXPECT_EQ(options.resolve("redis://a redis://b unix:///c", nodes, quorum).status,
            Status::kInvalid);
  EXPECT_EQ(options.resolve("redis://a", settings).status, Status::kInvalid);
}

TEST(OptionsTest, errors_of_urls_name_the_input_and_the_allowed_values) {
  expect_refused({
      {"", "no server was named"},
      {"localhost:6379", "redis"},
      {"redsi://h", "'redis://'"},
      {"http://h", "(got 'http://')"},
      {"redis://::1:6379", "brackets"},
      {"redis://fe80::1", "brackets"},
      {"redis://[h]:1", "IPv6"},
      {"redis://[::1]x:1", "port"},
      {"redis://a b", "letters, digits"},
      {"redis://-h", "letters, digits"},
      {"redis://h?holder=a@b", "%40"},
      {"redis://h?holder=a;b", "option 'holder' must be percent-enc"},
      {"redis://h?nonsense=1", "unknown option 'nonsense' (known are"},
      {"unix:///a;b", "percent-encoded"},
      {"redis+clutser://h", "did you mean 'redis+cluster://'?"},
      {"redis://h?tls_verify=full", "must be used with rediss://, valkeys://,"},
      {"unix:///s?tls_sni=x", "only (got unix:///s)"},
      {"rediss://h?tls_ca=/none", "'/none' cannot be read: No such"},
      {"rediss://h?tls_ca=", "must be a path of 1 to 4095 bytes"},
      {"rediss://h?tls_ca=/dev/null", "must be a file or a folder"},
      {"rediss://h?tls_cert=/", "must be a file"},
      {"rediss://h?tls_sni=.example", "must be a host name"},
      {"rediss://h?tls_cert=/proc/self/exe", "needs 'tls_key'"},
      {"rediss://h?tls_key=/proc/self/exe", "needs 'tls_cert'"},
      {"rediss://h?tls_verify=yes", "must be full, ca or none"},
      {"redis://h?protocol=resp/3", "must be 2 or 3"},
      {"redis://[::1", "must have a ']'"},
      {"redis://h?protocol", "each option must be name=value in"},
      {"redis://h?durable=yes", "option 'durable'"},
      {"rediss://h?tls_verify=none&tls_ca=/", "checks nothing"},
      {"rediss://h?tls_sni=a%20b", "must be a host name"},
      {"rediss://h?tls_certs=x", "'tls_cert'"},
      {"redis://", "host"},
      {"redis://h:0", "port"},
      {"redis://h:99999", "65535"},
      {"redis://h:1x", "port"},
      {"redis://h/abc", "database"},
      {"redis://h/-1", "16383"},
      {"redis://h/16384", "16383"},
      {"redis://h?comand_timeout=5", "'command_timeout'"},
      {"redis://h?command_timeout=5x", "500ms"},
      {"redis://h?command_timeout=0", "1 ms to 1 hour"},
      {"redis://h?command_timeout=99999999999999999999h", "1 hour"},
      {"redis://h?command_timeout=500",
       "must be a duration with a unit, such as 500ms or 500s (got '500')"},
      {"redis://h?timeout=5s", "unknown option 'timeout' (did you mean 'command_timeout'?)"},
      {"redis://h?ttl=5s", "it is an option of an acquisition (in redis://h?ttl=***)"},
      {"redis://%zz@h", "two hexadecimal digits"},
      {"redis://h?namespace=a{b", "brace"},
      {"redis://h#x", "fragment"},
      {"unix://", "absolute"},
      {"unix://relative", "absolute"},
      {"embedded://host", "three slashes"},
      {"embedded://host/dir", "an embedded server has no host"},
      {"embedded://localhost:6379", "embedded:///a/folder"},
      {"embedded://user:pw@/dir", "user and password must not be set"},
      {"embedded:///dir?password=x", "user and password must not be set"},
      {"embedded:///dir%00", "embedded:///a/folder"},
      {"embedded:///dir?server=redis-server", "absolute path"},
      {"embedded:///dir?sever=/x", "'server'"},
      {"embeded://", "'embedded://'"},
      {"redis://h?server=/x", "embedded:// only"},
  });
}

// ---- sentinels and clusters

TEST(OptionsTest, sentinel_urls_give_sentinels_and_a_name) {
  const Settings one = parsed("redis-sentinel://us:pw@a:1,b,[::1]:3/my-main.0_x/7?sentinel_user=w");
  EXPECT_EQ(one.sentinel.addresses,
            (std::vector<HostPort>{{"a", "1"}, {"b", "26379"}, {"::1", "3"}}));
  EXPECT_EQ(one.sentinel.primary_name, "my-main.0_x");
  EXPECT_EQ(one.database, 7);
  EXPECT_EQ(one.user + std::string(one.password), "uspw");
  EXPECT_EQ(one.sentinel.user, "w");
  EXPECT_EQ(one.address(), "redis-sentinel://a:1,b:26379,[::1]:3/my-main.0_x");
  EXPECT_EQ(one.shown_url, "redis-sentinel://us:***@a:1,b,[::1]:3/my-main.0_x/7?sentinel_user=***");
  EXPECT_EQ(parsed("redis+sentinel://h/m").sentinel.primary_name, "m");
  EXPECT_FALSE(parsed("valkey-sentinel://h/m/").tls.is_on);
  for (const char *url : {"rediss-sentinel://h/m", "rediss+sentinel://h/m",
                          "valkeys+sentinel://h/m", "valkeys-sentinel://h/m?sentinel_tls=no"}) {
    EXPECT_TRUE(parsed(url).tls.is_on) << url;
    EXPECT_FALSE(parsed(url).sentinel.tls.is_on)
        << url << ": sentinels have an option of their own";
  }
  EXPECT_FALSE(parsed("redis://h").has_sentinels());
}

TEST(OptionsTest, sentinels_get_no_credentials_or_tls_options_of_the_server) {
  const Settings settings = parsed(
      "rediss-sentinel://us:pw@a:1/m/3?tls_verify=ca&sentinel_tls=yes&sentinel_tls_sni=watch"
      "&connect_timeout=1s");
  const Settings sentinel = settings.of_sentinel({"a", "1"});
  EXPECT_TRUE(sentinel.user.empty() && sentinel.password.empty());
  EXPECT_EQ(sentinel.tls.sni, "watch");
  EXPECT_EQ(sentinel.tls.verify, TlsSettings::kFull);
  EXPECT_EQ(sentinel.connect_timeout, 1000 * kMs);
  EXPECT_EQ(sentinel.address(), "sentinel a:1");
  const Settings primary = settings.of_primary({"10.0.0.7", "6379"});
  EXPECT_EQ(primary.address(), "rediss://10.0.0.7:6379");
  EXPECT_EQ(primary.password, "pw");
  EXPECT_EQ(primary.database, 3);
  EXPECT_TRUE(primary.tls.sni.empty());
}

TEST(OptionsTest, errors_of_sentinel_urls_name_the_mistake) {
  std::string many = "redis-sentinel://h0";
  for (int i = 1; i < 16; i++) many += ",h" + std::to_string(i);
  expect_refused({
      {"redis-sentinel://h", "name of the primary must be 1 to 255 letters, digits"},
      {"redis-sentinel://h/", "redis-sentinel://host:26379,host:26379/NAME/0 (got none)"},
      {"redis-sentinel://h/a%20b", "name of the primary must be"},
      {"redis-sentinel://h/" + std::string(256, 'x'), "1 to 255"},
      {"redis-sentinel://h?sentinelMasterId=m", "(got a parameter in its place)"},
      {"redis-sentinel://h/0?master_name=m", "in the path, as in redis-sentinel://host"},
      {"redis-sentinel://h/0#m", "not behind a '#'"},
      {"redis-sentinel://h/m/x", "database must be a number of 0 to 16383"},
      {"redis-sentinel://h/m/0/1", "database must be"},
      {"redis-sentinel:///m", "host must be 1 to 253"},
      {"redis-sentinel://h,/m", "host must be 1 to 253"},
      {"redis-sentinel://h,,i/m", "host must be 1 to 253"},
      {"redis-sentinel://h:0/m", "port must be a number of 1 to 65535"},
      {"redis-sentinel://h:1,i:x/m", "port must be a number of 1 to 65535"},
      {"redis-sentinel://h,h:26379/m", "sentinel h:26379 must be named once"},
      {many + "/m", "sentinels must be 1 to 15"},
      {"redis-sentinel://::1/m", "IPv6 address in brackets"},
      {"redis-sentinels://h/m", "did you mean 'redis-sentinel://'?"},
      {"sentinel://h/m", "scheme must be one of"},
      {"redis-sentinel://h/m?sentinel_tls_ca=/proc/self/exe", "'sentinel_tls' must be yes"},
      {"redis-sentinel://h/m?sentinel_tls=yes&sentinel_tls_cert=/proc/self/exe",
       "'sentinel_tls_cert' needs 'sentinel_tls_key'"},
      {"redis-sentinel://h/m?tls_verify=ca", "rediss-sentinel:// and"},
      {"redis-sentinel://h/m?sentinel_tls=1", "must be yes or no"},
      {"redis-sentinel://h/m?sentinel_pasword=x", "did you mean 'sentinel_password'"},
      {"redis://h?sentinel_tls=yes", "options sentinel_.. must be used with redis-sentinel://"},
  });
}

TEST(OptionsTest, sentinel_options_by_name_need_sentinels) {
  Options options;
  ASSERT_TRUE(options.set("sentinel_password", "x").ok());
  Settings settings;
  EXPECT_TRUE(options.resolve("redis-sentinel://h/m", settings).ok());
  EXPECT_EQ(settings.sentinel.password, "x");
  EXPECT_EQ(options.resolve("redis://h", settings).status, Status::kInvalid);
  std::vector<Settings> nodes;
  QuorumSettings quorum;
  EXPECT_EQ(options.resolve("redis://h", nodes, quorum).status, Status::kInvalid);
}

TEST(OptionsTest, cluster_urls_give_nodes) {
  const Settings one = parsed("redis+cluster://us:pw@a:1,b,[::1]:3/0?cluster_hosts=a%2C::1");
  EXPECT_TRUE(one.is_cluster());
  EXPECT_EQ(one.cluster.addresses,
            (std::vector<HostPort>{{"a", "1"}, {"b", "6379"}, {"::1", "3"}}));
  EXPECT_EQ(one.user + std::string(one.password), "uspw");
  EXPECT_EQ(one.address(), "redis+cluster://a:1,b:6379,[::1]:3");
  EXPECT_EQ(one.shown_url, "redis+cluster://us:***@a:1,b,[::1]:3/0?cluster_hosts=a%2C::1");
  EXPECT_TRUE(one.cluster.allows("a") && one.cluster.allows("::1"));
  EXPECT_FALSE(one.cluster.allows("") || one.cluster.allows("b") || one.cluster.allows("a,::1"));
  EXPECT_TRUE(parsed("redis+cluster://h").cluster.allows("any"));
  for (const char *url : {"rediss+cluster://h", "valkeys+cluster://h/"}) {
    EXPECT_TRUE(parsed(url).tls.is_on) << url;
  }
  EXPECT_FALSE(parsed("valkey+cluster://h").tls.is_on);
  EXPECT_FALSE(parsed("redis://h").is_cluster());
  const Settings node = parsed("rediss+cluster://us:pw@a").of_node({"10.0.0.7", "7000"});
  EXPECT_EQ(node.address(), "rediss://10.0.0.7:7000");
  EXPECT_EQ(node.user + std::string(node.password), "uspw");
  EXPECT_FALSE(node.is_cluster());
}

TEST(OptionsTest, errors_of_cluster_urls_name_the_mistake) {
  std::string many = "redis+cluster://h0";
  for (int i = 1; i <= 64; i++) many += ",h" + std::to_string(i);
  expect_refused({
      {"redis+cluster://h/3", "db must be 0 on a cluster (got 3)"},
      {"redis+cluster://h?db=3", "db must be 0 on a cluster (got 3)"},
      {"redis+cluster://h/x", "database must be a number of 0 to 16383"},
      {"redis+cluster://h/name/0", "database must be a number of 0 to 16383"},
      {"redis+cluster://", "host must be 1 to 253"},
      {"redis+cluster://h,", "host must be 1 to 253"},
      {"redis+cluster://h,::1", "IPv6 address in brackets"},
      {"redis+cluster://h:0", "port must be a number of 1 to 65535"},
      {"redis+cluster://h,h:6379", "node h:6379 must be named once"},
      {many, "the nodes must be 1 to 64 (got more)"},
      {"redis+cluster://h?cluster_hosts=a%2C%2Cb", "with ',' between them (got '')"},
      {"redis+cluster://h?cluster_hosts=a:1", "with ',' between them (got 'a:1')"},
      {"redis+cluster://h?cluster_host=a", "did you mean 'cluster_hosts'?"},
      {"redis://h?cluster_hosts=a", "must be used with redis+cluster:// only"},
      {"redis+cluster://h?sentinel_user=u", "must be used with redis-sentinel:// only"},
  });
}

// ---- names, values and where they come from

TEST(OptionsTest, only_a_near_name_is_suggested) {
  for (const char *url : {"http://h", "redis://h?nonsense=1", "x://h"}) {
    Settings settings;
    const auto outcome = Options().resolve(url, settings);
    EXPECT_EQ(outcome.message.find("did you mean"), std::string::npos) << outcome.message;
  }
  Options options;
  EXPECT_EQ(options.set("nonsense", "1").message.find("did you mean"), std::string::npos);
  EXPECT_NE(options.set("hodler", "1").message.find("did you mean 'holder'"), std::string::npos);
  EXPECT_NE(options.set("node_timeuot", "1").message.find("'node_timeout'"), std::string::npos);
  EXPECT_EQ(options.set("timeout", "1s").message,
            "unknown option 'timeout' (did you mean 'command_timeout'?)");
}

TEST(OptionsTest, ipv6_addresses_are_shown_in_brackets) {
  EXPECT_EQ(parsed("redis://[::1]:7000/1").address(), "redis://[::1]:7000");
  EXPECT_EQ(parsed("rediss://[fe80::1%25lo]").address(), "rediss://[fe80::1%lo]:6379");
  EXPECT_EQ(parsed("redis://[fe80::1%lo]").host, "fe80::1%lo");
  EXPECT_EQ(parsed("redis://127.0.0.1:06379").address(), "redis://127.0.0.1:6379");
  Settings settings;
  const auto outcome = Options().resolve("redis://[::1]?server=/x", settings);
  EXPECT_NE(outcome.message.find("only (got redis://[::1]:6379)"), std::string::npos)
      << outcome.message;
}

TEST(OptionsTest, a_redlock_needs_an_odd_number_of_independent_servers) {
  std::string many = "redis://a0";
  for (int i = 1; i < 17; i++) many += " redis://a" + std::to_string(i);
  expect_refused_nodes({
      {"redis://a redis://b", "must be an odd number"},
      {"redis://a redis://b redis://a", "independent servers (got redis://a twice)"},
      {"redis://a redis://b redis://c:0", "port must be"},
      {many, "at most 15 nodes (got more, from redis://a15 on)"},
      {"redis://a redis://b?namespace=x redis://c", "must be the same for all nodes"},
      {"redis://a redis-sentinel://h/m redis://b", "failover to a replica forgets votes"},
      {"redis://a\nredis+cluster://b\nredis://c", "a node of a Redlock must be one server"},
      // Of five servers two that were left out must not make a quorum of three.
      {"redis://a\n\nredis://b", "URL 2 must not be empty"},
      {"redis://a\nredis://b\n\n", "URL 3 must not be empty"},
      {"\nredis://a", "URL 1 must not be empty"},
      {"redis://a redis://b \n \t\r\nredis://c", "URL 3 must not be empty"},
      {"\n", "URL 1 must not be empty"},
      {" ", "URL 1 must not be empty"},
  });
  std::vector<Settings> nodes;
  QuorumSettings quorum;
  EXPECT_TRUE(Options().resolve(" redis://a \t redis://b\r\n  redis://c\n", nodes, quorum).ok());
  EXPECT_EQ(nodes.size(), 3U);
}

TEST(OptionsTest, an_option_overrides_the_url) {
  Options options;
  EXPECT_TRUE(options.set("db", "5").ok());
  EXPECT_TRUE(options.set("command_timeout", "1m").ok());
  Settings settings;
  ASSERT_TRUE(options.resolve("redis://h/2?command_timeout=3s", settings).ok());
  EXPECT_EQ(settings.database, 5);
  EXPECT_EQ(settings.command_timeout, 60'000 * kMs);
  EXPECT_EQ(options.set("db", "x").status, Status::kInvalid);
  EXPECT_EQ(options.set("comand_timeout", "1").status, Status::kInvalid);
}

// A variable for the time of a test.
class Variable {
 public:
  Variable(const char *name, const std::string &value) : name_(name) {
    setenv(name, value.c_str(), 1);
  }
  ~Variable() { unsetenv(name_); }
  Variable(const Variable &) = delete;
  Variable &operator=(const Variable &) = delete;

 private:
  const char *name_;
};

std::string password_file(const std::string &text) {
  std::string path = testing::TempDir() + "password";
  std::ofstream(path) << text;
  return path;
}

TEST(OptionsTest, environment_variables_apply_where_no_option_or_url_is_set) {
  const Variable url("REDLATCH_URL", "redis://from-env/1");
  const Variable other_url("REDIS_URL", "redis://never");
  const Variable name_space("REDLATCH_NAMESPACE", "env:");
  const Variable password("REDISCLI_AUTH", "from-env");
  Options options;
  Settings settings;
  EXPECT_FALSE(options.resolve("", settings).ok()) << "the environment was not read";
  ASSERT_TRUE(options.set_from_env().ok());
  ASSERT_TRUE(options.resolve("", settings).ok());
  EXPECT_EQ(settings.host, "from-env");
  EXPECT_EQ(settings.name_space, "env:");
  EXPECT_EQ(settings.password, "from-env");
  ASSERT_TRUE(options.resolve("redis://u:pw@h?namespace=url:", settings).ok());
  EXPECT_EQ(settings.host, "h");
  EXPECT_EQ(settings.name_space, "url:");
  EXPECT_EQ(settings.password, "pw");
  ASSERT_TRUE(options.set("namespace", "").ok());
  ASSERT_TRUE(options.resolve("redis://h?namespace=url:", settings).ok());
  EXPECT_EQ(settings.name_space, "");
}

TEST(OptionsTest, an_error_names_redlatch_url_only_if_the_environment_was_read) {
  Options options;
  Settings settings;
  EXPECT_EQ(options.resolve("", settings).message, "no server was named: give a URL");
  ASSERT_TRUE(options.set_from_env().ok());
  EXPECT_EQ(options.resolve("", settings).message,
            "no server was named: give a URL, or set REDLATCH_URL");
}

TEST(OptionsTest, an_error_of_an_empty_url_in_a_variable_has_its_position) {
  std::vector<Settings> nodes;
  QuorumSettings quorum;
  {
    const Variable url("REDLATCH_URL", "\nredis://a\nredis://b redis://c\n");
    Options options;
    ASSERT_TRUE(options.set_from_env().ok());
    EXPECT_TRUE(options.resolve("", nodes, quorum).ok()) << "a line end around all URLs is ignored";
    EXPECT_EQ(nodes.size(), 3U);
  }
  const Variable url("REDLATCH_URL", "redis://a\n\nredis://b\nredis://c");
  Options options;
  ASSERT_TRUE(options.set_from_env().ok());
  const auto outcome = options.resolve("", nodes, quorum);
  EXPECT_NE(outcome.message.find("URL 2 must not be empty"), std::string::npos) << outcome.message;
}

TEST(OptionsTest, an_error_names_the_invalid_environment_variable) {
  const Variable name_space("REDLATCH_NAMESPACE", "a{b");
  Options options;
  const auto outcome = options.set_from_env();
  EXPECT_EQ(outcome.status, Status::kInvalid);
  EXPECT_NE(outcome.message.find("REDLATCH_NAMESPACE"), std::string::npos) << outcome.message;
}

TEST(OptionsTest, password_comes_from_the_first_line_of_a_file) {
  Options options;
  Settings settings;
  ASSERT_TRUE(options.set("password_file", password_file("canary\r\nmore\n")).ok());
  ASSERT_TRUE(options.resolve("redis://user@h", settings).ok());
  EXPECT_EQ(settings.user, "user");
  EXPECT_EQ(settings.password, "canary");
  EXPECT_TRUE(settings.is_password_read_again);
  for (const std::string &path : {password_file(""), std::string("/no/such/file")}) {
    const auto outcome = options.set("password_file", path);
    EXPECT_EQ(outcome.status, Status::kInvalid);
    EXPECT_NE(outcome.message.find(path), std::string::npos) << outcome.message;
  }
  const auto with_nul = options.set("password_file", std::string("/dev/null\0x", 11));
  EXPECT_NE(with_nul.message.find("must be a path"), std::string::npos) << with_nul.message;
  const auto endless = options.set("password_file", "/dev/zero");
  EXPECT_NE(endless.message.find("64 KiB"), std::string::npos) << endless.message;
  EXPECT_EQ(options.set("password_file", testing::TempDir()).status, Status::kInvalid);
  // One that the URL makes needless is not looked at.
  const Variable missing("REDLATCH_PASSWORD_FILE", "/no/such/file");
  Options from_env;
  ASSERT_TRUE(from_env.set_from_env().ok());
  EXPECT_TRUE(from_env.resolve("redis://:pw@h", settings).ok());
  EXPECT_FALSE(from_env.resolve("redis://h", settings).ok());
}

// A pipe with a name, and one writer that may come late.
class Pipe {
 public:
  explicit Pipe(const std::string &line)
      : path_(testing::TempDir() + "pipe" + std::to_string(getpid())) {
    EXPECT_EQ(mkfifo(path_.c_str(), 0600), 0);
    if (line.empty()) return;
    writer_ = std::thread([this, line] { std::ofstream(path_) << line; });
  }
  ~Pipe() {
    const int reader = open(path_.c_str(), O_RDWR | O_NONBLOCK);  // for one that still waits
    if (writer_.joinable()) writer_.join();
    close(reader);
    unlink(path_.c_str());
  }
  const std::string &path() const { return path_; }

 private:
  std::string path_;
  std::thread writer_;
};

TEST(OptionsTest, password_in_a_pipe_is_read_once_when_the_option_is_set) {
  const Pipe pipe("canary\n");
  Options options;
  const auto set = options.set("password_file", pipe.path());
  ASSERT_TRUE(set.ok()) << set.message;
  Settings settings;
  const auto one = options.resolve("redis://h", settings);
  ASSERT_TRUE(one.ok()) << one.message;
  EXPECT_EQ(settings.password, "canary");
  EXPECT_FALSE(settings.is_password_read_again);
  std::vector<Settings> nodes;
  QuorumSettings quorum;
  ASSERT_TRUE(options.resolve("redis://a redis://b redis://c", nodes, quorum).ok());
  for (const Settings &node : nodes) EXPECT_EQ(node.password, "canary");
}

TEST(OptionsTest, password_in_a_pipe_of_the_environment_is_for_all_nodes) {
  const Pipe pipe("canary\n");
  const Variable file("REDLATCH_PASSWORD_FILE", pipe.path().c_str());
  Options options;
  ASSERT_TRUE(options.set_from_env().ok());
  std::vector<Settings> nodes;
  QuorumSettings quorum;
  const auto outcome = options.resolve("redis://a redis://b redis://c", nodes, quorum);
  ASSERT_TRUE(outcome.ok()) << outcome.message;
  for (const Settings &node : nodes) EXPECT_EQ(node.password, "canary");
}

TEST(OptionsTest, password_pipe_without_data_is_invalid_after_a_second) {
  const Pipe pipe("");
  Options options;
  const auto outcome = options.set("password_file", pipe.path());
  EXPECT_EQ(outcome.status, Status::kInvalid);
  EXPECT_NE(outcome.message.find("nothing came within a second"), std::string::npos)
      << outcome.message;
}

TEST(OptionsTest, password_file_is_read_again_after_a_change_of_folder) {
  const std::string before = std::filesystem::current_path();
  std::filesystem::current_path(std::filesystem::path(password_file("old\n")).parent_path());
  Options options;
  ASSERT_TRUE(options.set("password_file", "password").ok());
  std::filesystem::current_path("/");
  password_file("new\n");
  Settings settings;
  const auto outcome = options.resolve("redis://h", settings);
  std::filesystem::current_path(before);
  ASSERT_TRUE(outcome.ok()) << outcome.message;
  EXPECT_EQ(settings.password, "new");
}

TEST(OptionsTest, the_last_of_password_and_password_file_counts) {
  const std::string file = password_file("of-file\n");
  Options options;
  Settings settings;
  ASSERT_TRUE(options.set("password_file", file).ok());
  ASSERT_TRUE(options.set("password", "by-name").ok());
  ASSERT_TRUE(options.resolve("redis://:in-url@h?password_file=" + file, settings).ok());
  EXPECT_EQ(settings.password, "by-name");
  ASSERT_TRUE(options.set("password_file", file).ok());
  ASSERT_TRUE(options.resolve("redis://:in-url@h?password=in-url", settings).ok());
  EXPECT_EQ(settings.password, "of-file");
  const Options none;
  const std::string both = "redis://h?password=in-url&password_file=" + file;
  ASSERT_TRUE(none.resolve(both, settings).ok());
  EXPECT_EQ(settings.password, "of-file");
  ASSERT_TRUE(none.resolve(both + "&password=in-url", settings).ok());
  EXPECT_EQ(settings.password, "in-url");
}

TEST(OptionsTest, resolved_values_are_shown_but_no_secrets) {
  Options options;
  ASSERT_TRUE(options.set("password", "canary").ok());
  Settings settings;
  ASSERT_TRUE(options.resolve("redis://u:canary@h/2?command_timeout=3s", settings).ok());
  EXPECT_EQ(option_of(settings, "url"), "redis://u:***@h/2?command_timeout=3s");
  EXPECT_EQ(option_of(settings, "command_timeout"), "3000ms");
  EXPECT_EQ(option_of(settings, "db"), "2");
  EXPECT_EQ(option_of(settings, "user"), "u");
  EXPECT_EQ(option_of(settings, "password"), "");
  EXPECT_EQ(option_of(settings, "nonsense"), "");
  EXPECT_FALSE(option_of(settings, "holder").empty());
}

}  // namespace redlatch::config

// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// How the values of options are written: the grammar of each kind, and what messages say of it.
#pragma once

#include <string>
#include <string_view>

#include "config/option_table.h"

namespace redlatch::config {

// The allowed values, as "10 ms to 7 days".
std::string allowed_of(const Option &option);
// "option 'x' must be .."
Outcome must_be(const Option &option, const std::string &allowed);

// Make `path` absolute. @return 0; errno if it is empty, or the working directory has no path.
[[nodiscard]] int make_absolute(std::string &path);

Outcome read_value(const Option &option, std::string_view value, Nanos &target);
Outcome read_value(const Option &option, std::string_view value, int &target);
Outcome read_value(const Option &option, std::string_view value, bool &target);
Outcome read_value(const Option &option, std::string_view value, uint8_t &target);
Outcome read_value(const Option &option, std::string_view value, std::string &target);
Outcome read_value(const Option &option, std::string_view value, Password &target);

std::string shown_value(const Option &option, Nanos value);
std::string shown_value(const Option &option, int value);
std::string shown_value(const Option &option, bool value);
std::string shown_value(const Option &option, uint8_t value);
std::string shown_value(const Option &option, const std::string &value);
std::string shown_value(const Option &option, const Password &value);

}  // namespace redlatch::config

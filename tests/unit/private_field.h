// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Private fields for tests of states that no event leads to: check() and LockClient have to meet
// them all the same.
#pragma once

#include <type_traits>

namespace redlatch {

// Names of private members are allowed in an explicit instantiation.
template <class Tag, auto kField>
struct OpenField {
  friend constexpr auto field_of(Tag) { return kField; }
};

template <class Tag, class Object>
auto &opened(Object &object) {
  return object.*field_of(Tag());
}

// An enum may be private as well: its value is given as a number.
template <class Tag, class Object>
void set(Object &object, auto value) {
  auto &field = opened<Tag>(object);
  field = static_cast<std::remove_reference_t<decltype(field)>>(value);
}

}  // namespace redlatch

// `Tag` opens `field` of `Class`. In namespace redlatch only.
#define REDLATCH_OPEN_FIELD(Tag, Class, field) \
  struct Tag {                                 \
    friend constexpr auto field_of(Tag);       \
  };                                           \
  template struct OpenField<Tag, &Class::field>

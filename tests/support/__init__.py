# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""Shared by the folders of tests: real servers (`servers`, `embedded`, `tls`), a small client
(`resp`), histories (`history`, `record`), and builds for Go, Java and Maven."""

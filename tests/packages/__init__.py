# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors

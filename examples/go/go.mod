// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
module redlatch.io/redlatch/examples

go 1.21

require redlatch.io/redlatch v0.0.0

replace redlatch.io/redlatch => ../../go

# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""What every kind of test needs: real servers (`servers`) and a small client (`resp`)."""

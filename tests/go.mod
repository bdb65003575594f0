// Programs in Go that the tests start. They use the package as it is in this tree.
module redlatch/tests

go 1.21

require redlatch.io/redlatch v0.0.0

replace redlatch.io/redlatch => ../go

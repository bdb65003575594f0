module redlatch.io/redlatch

go 1.21

require go.uber.org/goleak v1.3.0

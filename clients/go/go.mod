module cynodesba

go 1.21

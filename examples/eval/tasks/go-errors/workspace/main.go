package main

import (
	"fmt"
	"os"
)

func main() {
	for _, text := range os.Args[1:] {
		fmt.Println(parse(text))
	}
}

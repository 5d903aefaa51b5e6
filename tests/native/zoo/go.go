// Strange: it is written in Go, whose stacks move and whose calls are not those of C.
package main

import "fmt"

//go:noinline
func square(n int) int { return n * n }

//go:noinline
func deeper(n int) int {
	var room [512]byte
	room[n%512] = byte(n)
	if n == 0 {
		return int(room[0])
	}
	return deeper(n-1) + int(room[n%512])%2
}

//go:noinline
func squares(from int, results chan<- int) {
	sum := 0
	for n := from; n < from+20; n++ {
		sum += square(n)
	}
	results <- sum
}

func main() {
	results := make(chan int)
	for turn := 0; turn < 4; turn++ {
		go squares(turn*20, results)
	}
	sum := 0
	for turn := 0; turn < 4; turn++ {
		sum += <-results
	}
	fmt.Println(sum, deeper(200))
}

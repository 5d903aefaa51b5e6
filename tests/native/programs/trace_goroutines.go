// Calls that go from thread to thread, with stacks that grow: each of 4 goroutines calls each function as often.
package main

import (
	"fmt"
	"runtime"
	"sync"
)

//go:noinline
func leaf(n int) int { return n*2 + 1 }

// A large frame, so that the stack has to grow within the recursion.
//
//go:noinline
func grow(n int) int {
	var large [2048]byte
	large[n%2048] = byte(n)
	if n == 0 {
		return int(large[0])
	}
	return grow(n-1) + int(large[n%2048])
}

type list struct{ items []int }

//go:noinline
func (l *list) push(item int) {
	l.items = append(l.items, item)
	runtime.Gosched()
}

//go:noinline
func work(n int) int {
	sum := 0
	for i := 0; i < n; i++ {
		sum += leaf(i)
	}
	return sum
}

func main() {
	runtime.GOMAXPROCS(2)
	var all sync.WaitGroup
	total := make([]int, 4)
	for number := 0; number < 4; number++ {
		all.Add(1)
		go func(number int) {
			defer all.Done()
			var l list
			for i := 0; i < 10; i++ {
				total[number] += work(20) + grow(30)
				l.push(i)
			}
			total[number] += len(l.items)
		}(number)
	}
	all.Wait()
	fmt.Println(total)
}

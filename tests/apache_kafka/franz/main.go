// Sends numbered messages to a topic by franz-go, and receives them as a group.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func main() {
	address, topic := os.Args[1], os.Args[2]
	count, err := strconv.Atoi(os.Args[3])
	check(err)
	patience, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	client, err := kgo.NewClient(
		kgo.SeedBrokers(address),
		kgo.ConsumerGroup("franz-"+topic),
		kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	)
	check(err)
	defer client.Close()
	for number := range count {
		record := &kgo.Record{Topic: topic, Value: fmt.Appendf(nil, "message %d", number)}
		client.Produce(patience, record, func(_ *kgo.Record, err error) { check(err) })
	}
	check(client.Flush(patience))
	received := map[string]bool{}
	for len(received) < count {
		fetches := client.PollFetches(patience)
		check(patience.Err())
		fetches.EachRecord(func(record *kgo.Record) { received[string(record.Value)] = true })
	}
	fmt.Println(len(received))
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

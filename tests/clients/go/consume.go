package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

var kinds = map[string]pulsar.SubscriptionType{
	"exclusive":  pulsar.Exclusive,
	"shared":     pulsar.Shared,
	"failover":   pulsar.Failover,
	"key_shared": pulsar.KeyShared,
}

// remembered is the number of messages that are also known by their ids. Repeats come soon, and a
// consumer may run for hours.
const remembered = 10_000

// identity is where the broker has stored a message.
type identity struct {
	number int
	id     string
}

// place is the scope of message order: one key in one partition.
type place struct{ topic, key string }

// received records the received messages. One that comes again is redelivered, or was stored twice
// if its id differs. One that comes first after a later one of its place is out of order.
type received struct {
	Received    ranges   `json:"received"`
	Redelivered int      `json:"redelivered"`
	StoredTwice int      `json:"stored_twice"`
	OutOfOrder  int      `json:"out_of_order"`
	Errors      []string `json:"errors"`

	ids  map[int]identity
	last map[place]int
}

func consume(ctx context.Context, client pulsar.Client, asked options) (any, error) {
	kind, known := kinds[asked.kind]
	if !known {
		return nil, fmt.Errorf("unknown type %q of a subscription", asked.kind)
	}
	consumer, err := client.Subscribe(pulsar.ConsumerOptions{
		Topic:                       asked.topic,
		SubscriptionName:            asked.subscription,
		Type:                        kind,
		SubscriptionInitialPosition: pulsar.SubscriptionPositionEarliest,
		ReceiverQueueSize:           asked.queue,
		EnableZeroQueueConsumer:     asked.queue == 0,
	})
	if err != nil {
		return nil, err
	}
	defer consumer.Close()
	sayReady()
	report := &received{
		Received: ranges{}, Errors: []string{}, ids: map[int]identity{}, last: map[place]int{},
	}
	receiveAll(ctx, consumer, asked, report)
	if asked.stay {
		sayComplete()
		<-ctx.Done()
	}
	return report, nil
}

// receiveAll receives until everything has arrived and repeats had their time, or ctx ends.
func receiveAll(ctx context.Context, consumer pulsar.Consumer, asked options, report *received) {
	ctx, finish := context.WithCancel(ctx)
	defer finish()
	isComplete := false
	for {
		message, err := receive(ctx, consumer, asked.poll)
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, context.DeadlineExceeded) {
			continue
		}
		if err == nil {
			err = report.note(message)
		}
		if err == nil {
			err = consumer.Ack(message)
		}
		if err != nil {
			report.Errors = noted(report.Errors, err)
			return
		}
		if !isComplete && asked.count > 0 && report.Received.size() >= asked.count {
			isComplete = true
			time.AfterFunc(asked.quiet, finish)
		}
		time.Sleep(asked.work)
	}
}

// receive waits for a message, up to the given time if there is one.
func receive(ctx context.Context, consumer pulsar.Consumer, poll time.Duration) (pulsar.Message, error) {
	if poll > 0 {
		limited, cancel := context.WithTimeout(ctx, poll)
		defer cancel()
		ctx = limited
	}
	return consumer.Receive(ctx)
}

func (report *received) note(message pulsar.Message) error {
	number, err := strconv.Atoi(string(message.Payload()))
	if err != nil {
		return err
	}
	found := identity{number, string(message.ID().Serialize())}
	if !report.Received.add(number) {
		report.repeat(found)
		return nil
	}
	report.ids[number%remembered] = found
	where := place{message.Topic(), message.Key()}
	if last, some := report.last[where]; some && number < last {
		report.OutOfOrder++
	} else {
		report.last[where] = number
	}
	return nil
}

func (report *received) repeat(found identity) {
	first := report.ids[found.number%remembered]
	if first.number == found.number && first.id != found.id {
		report.StoredTwice++
	} else {
		report.Redelivered++
	}
}

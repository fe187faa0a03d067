package main

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

const (
	// perTransaction is how many messages one takes over, at most.
	perTransaction = 5
	// abortEvery is which transactions are aborted.
	abortEvery = 4
	// aborted is added to the number of what is sent to be aborted, once for the first such transaction,
	// twice for the second, and so on.
	aborted = 1_000_000
	// transactionLimit is after what time a coordinator aborts one that it hears no more of.
	transactionLimit = 5 * time.Second
	// patience is for answers: a broker does not answer an acknowledgement that comes before its consumer
	// is open again.
	patience = 8 * time.Second
	// poll is how long is waited for the messages of one transaction.
	poll = 100 * time.Millisecond
)

// transacted is what became of transactions. A failed one is neither known to be committed nor aborted.
type transacted struct {
	Moved     ranges   `json:"moved"`
	Committed int      `json:"committed"`
	Aborted   int      `json:"aborted"`
	Failed    int      `json:"failed"`
	Errors    []string `json:"errors"`
	LongestMs float64  `json:"longest_ms"`
}

// mover takes messages from one topic to another: both or neither, in a transaction.
type mover struct {
	client   pulsar.Client
	consumer pulsar.Consumer
	producer pulsar.Producer
	report   *transacted
}

// transact moves messages until COUNT are (0: until it is told to stop). Every fourth transaction is
// aborted: what it took comes again.
func transact(ctx context.Context, client pulsar.Client, asked options) (any, error) {
	consumer, err := subscribe(client, pulsar.ConsumerOptions{
		Topic: asked.topic, Type: pulsar.Shared, NackRedeliveryDelay: poll,
	})
	if err != nil {
		return nil, err
	}
	defer consumer.Close()
	producer, err := client.CreateProducer(pulsar.ProducerOptions{
		// A message in a transaction may wait for ever.
		Topic: asked.target, DisableBatching: !asked.batch, SendTimeout: -1,
		BatchingMaxPublishDelay: 10 * time.Millisecond,
	})
	if err != nil {
		return nil, err
	}
	defer producer.Close()
	sayReady()
	report := &transacted{Moved: ranges{}, Errors: []string{}}
	moving := mover{client, consumer, producer, report}
	for number := 0; ctx.Err() == nil && (asked.count == 0 || report.Moved.size() < asked.count); number++ {
		extra := 0
		if number%abortEvery == abortEvery-1 {
			extra = aborted * (number/abortEvery + 1)
		}
		moving.once(ctx, extra)
	}
	return report, nil
}

// once is one transaction; it is aborted if extra is not 0, which is added to its numbers then.
func (it mover) once(ctx context.Context, extra int) {
	messages := it.take(ctx)
	if len(messages) == 0 {
		return
	}
	begun := time.Now()
	err := it.within(messages, extra)
	it.report.LongestMs = max(it.report.LongestMs, float64(time.Since(begun).Microseconds())/1000)
	if err == nil {
		return
	}
	it.report.Failed++
	it.report.Errors = noted(it.report.Errors, err)
}

// take receives the messages of one transaction.
func (it mover) take(ctx context.Context) []pulsar.Message {
	ctx, expire := context.WithTimeout(ctx, poll)
	defer expire()
	var messages []pulsar.Message
	for len(messages) < perTransaction {
		message, err := it.consumer.Receive(ctx)
		if err != nil {
			break
		}
		messages = append(messages, message)
	}
	return messages
}

func (it mover) within(messages []pulsar.Message, extra int) error {
	transaction, err := it.client.NewTransaction(transactionLimit)
	if err != nil {
		return err
	}
	if err := it.fill(transaction, messages, extra); err != nil {
		_ = transaction.Abort(context.Background()) // or its time is up
		return err
	}
	if extra != 0 {
		err = transaction.Abort(context.Background())
	} else {
		err = transaction.Commit(context.Background())
	}
	if err == nil {
		it.settled(messages, extra != 0)
	}
	return err
}

func (it mover) settled(messages []pulsar.Message, isAborted bool) {
	if isAborted {
		it.report.Aborted++
		return
	}
	it.report.Committed++
	for _, message := range messages {
		number, _ := strconv.Atoi(string(message.Payload()))
		it.report.Moved.add(number)
	}
}

func (it mover) fill(transaction pulsar.Transaction, messages []pulsar.Message, extra int) error {
	failed := make(chan error, len(messages))
	for _, message := range messages {
		number, err := strconv.Atoi(string(message.Payload()))
		if err != nil {
			return err
		}
		it.producer.SendAsync(context.Background(),
			&pulsar.ProducerMessage{Payload: []byte(strconv.Itoa(number + extra)), Transaction: transaction},
			func(_ pulsar.MessageID, _ *pulsar.ProducerMessage, err error) { failed <- err })
	}
	var first error
	for _, message := range messages {
		if err := it.consumer.AckWithTxn(message, transaction); err != nil {
			first = errors.Join(first, err)
			it.askAgain(message, err)
		}
	}
	for range messages {
		first = errors.Join(first, <-failed)
	}
	return first
}

// askAgain has a message delivered again whose acknowledgement failed. One that is in a conflict is
// another transaction's; those that are acknowledged come again when theirs is aborted.
func (it mover) askAgain(message pulsar.Message, err error) {
	if !strings.Contains(err.Error(), "TransactionConflict") {
		it.consumer.Nack(message)
	}
}

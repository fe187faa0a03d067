// A small Pulsar client on the published Go package, for tests.
//
//	client URL produce TOPIC COUNT [--batch] [--key] [--serial] [--interval-ms N] [--patience-s N] [--limit-s N] [--token T | --token-file F]
//	client URL consume TOPIC SUBSCRIPTION COUNT [--type KIND] [--queue N] [--work-ms N] [--poll-ms N] [--quiet-ms N] [--limit-s N] [--token T | --token-file F]
//	client URL transact SOURCE TARGET COUNT [--limit-s N] [--token T | --token-file F]
//	client URL load STREAMS FILE [--tag NAME] [--size N] [--batch-of N] [--pending N] [--when-full block|fail] [--patience-s N] [--limit-s N]
//	client URL chunks|json|avro|list|packed|pattern|read|seek|table TOPIC COUNT [--size N]
//
// It prints {"ready": true} once it is connected, and one line of JSON with what became of it at its
// end: when COUNT is reached (0: never), at SIGTERM, or when its time is up. ../programs.py drives it
// and says what the words mean; ../java is the same program in Java.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

// options are those of the command line.
type options struct {
	topic        string
	subscription string
	target       string
	count        int
	size         int
	batch        bool
	key          bool
	serial       bool
	interval     time.Duration
	kind         string
	queue        int
	work         time.Duration
	poll         time.Duration
	quiet        time.Duration
	stay         bool
	limit        time.Duration
	token        string
	tokenFile    string
	trust        string
	certificate  string
	privateKey   string
	asCredential bool
	file         string
	tag          string
	batchOf      int
	pending      int
	whenFull     string
	patience     time.Duration
}

type action func(ctx context.Context, client pulsar.Client, asked options) (any, error)

// verb is something that a client can do: the number of words after its name, how to read them, and
// what to do. Each is a line in verbs.
type verb struct {
	words int
	read  func(words []string, into *options) error
	run   action
}

var verbs = map[string]verb{
	"produce":  {2, readCount, produce},
	"consume":  {3, readConsume, consume},
	"transact": {3, readTransact, transact},
	"load":     {2, readLoad, load},
	"chunks":   {2, readCount, trying(chunks)},
	"json":     {2, readCount, trying(jsonRecords)},
	"avro":     {2, readCount, trying(avroRecords)},
	"list":     {2, readCount, trying(listed)},
	"packed":   {2, readCount, trying(packed)},
	"pattern":  {2, readCount, trying(matching)},
	"read":     {2, readCount, trying(read)},
	"seek":     {2, readCount, trying(seek)},
	"table":    {2, readCount, trying(table)},
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "client:", err)
		os.Exit(1)
	}
}

func run(words []string) error {
	if len(words) < 2 {
		return fmt.Errorf("wanted: URL VERB ...")
	}
	chosen, known := verbs[words[1]]
	if !known {
		return fmt.Errorf("unknown verb %q", words[1])
	}
	asked, err := parse(chosen, words[2:])
	if err != nil {
		return err
	}
	client, err := connect(words[0], asked, words[1] == "transact")
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	ctx, expire := context.WithTimeout(ctx, asked.limit)
	defer expire()
	report, err := chosen.run(ctx, client, asked)
	if err != nil {
		return err
	}
	say(report)
	return nil
}

func parse(chosen verb, words []string) (options, error) {
	var asked options
	if len(words) < chosen.words {
		return asked, fmt.Errorf("wanted %d words behind the verb", chosen.words)
	}
	if err := chosen.read(words[:chosen.words], &asked); err != nil {
		return asked, err
	}
	flags := flag.NewFlagSet("client", flag.ContinueOnError)
	flags.BoolVar(&asked.batch, "batch", false, "send messages in batches")
	flags.BoolVar(&asked.key, "key", false, "give messages one of ten keys in turn")
	flags.BoolVar(&asked.serial, "serial", false, "wait for each receipt, end with the first error")
	interval := flags.Int("interval-ms", 0, "pause between two messages")
	flags.StringVar(&asked.kind, "type", "exclusive", "of the subscription")
	flags.IntVar(&asked.queue, "queue", 1000, "messages that wait in the consumer; 0: it asks for each")
	work := flags.Int("work-ms", 0, "the consumer takes so long for each message")
	poll := flags.Int("poll-ms", 0, "wait for a message so long, and then ask again; 0: for ever")
	quiet := flags.Int("quiet-ms", 500, "listen for repeats so long when all has come")
	flags.BoolVar(&asked.stay, "stay", false, "say when all has come, and stay until told to stop")
	limit := flags.Int("limit-s", 60, "stop after so long in any case")
	flags.IntVar(&asked.size, "size", 0, "bytes of a message")
	flags.StringVar(&asked.token, "token", "", "shown to the broker")
	flags.StringVar(&asked.tokenFile, "token-file", "", "holds the token, and is read whenever one is needed")
	flags.StringVar(&asked.trust, "trust", "", "file of the authority that signs for the server")
	flags.StringVar(&asked.certificate, "certificate", "", "file of the certificate shown to the server")
	flags.StringVar(&asked.privateKey, "private-key", "", "file of its key")
	flags.BoolVar(&asked.asCredential, "tls-credential", false, "authenticate by the certificate")
	flags.StringVar(&asked.tag, "tag", "", "who sends: in each message of a load")
	flags.IntVar(&asked.batchOf, "batch-of", 0, "messages of a batch at most; 0: no batches")
	flags.IntVar(&asked.pending, "pending", 0, "messages without a receipt at most; 0: as usual")
	flags.StringVar(&asked.whenFull, "when-full", "block", "what a send beyond that does")
	patience := flags.Int("patience-s", 0, "wait for receipts so long at the end")
	if err := flags.Parse(words[chosen.words:]); err != nil {
		return asked, err
	}
	asked.interval = time.Duration(*interval) * time.Millisecond
	asked.poll = time.Duration(*poll) * time.Millisecond
	asked.work = time.Duration(*work) * time.Millisecond
	asked.quiet = time.Duration(*quiet) * time.Millisecond
	asked.patience = time.Duration(*patience) * time.Second
	asked.limit = time.Duration(*limit) * time.Second
	return asked, nil
}

func readCount(words []string, into *options) (err error) {
	into.topic = words[0]
	into.count, err = strconv.Atoi(words[1])
	return err
}

func readConsume(words []string, into *options) (err error) {
	into.topic, into.subscription = words[0], words[1]
	into.count, err = strconv.Atoi(words[2])
	return err
}

func readTransact(words []string, into *options) (err error) {
	into.topic, into.target = words[0], words[1]
	into.count, err = strconv.Atoi(words[2])
	return err
}

func connect(url string, asked options, transactions bool) (pulsar.Client, error) {
	wanted := pulsar.ClientOptions{URL: url}
	if asked.trust != "" {
		wanted.TLSTrustCertsFilePath = asked.trust
		wanted.TLSValidateHostname = true
	}
	if asked.asCredential {
		wanted.Authentication = pulsar.NewAuthenticationTLS(asked.certificate, asked.privateKey)
	} else if asked.certificate != "" {
		wanted.TLSCertificateFile = asked.certificate
		wanted.TLSKeyFilePath = asked.privateKey
	}
	if transactions {
		wanted.EnableTransaction = true
		wanted.OperationTimeout = patience
	}
	if asked.token != "" {
		wanted.Authentication = pulsar.NewAuthenticationToken(asked.token)
	}
	if asked.tokenFile != "" {
		wanted.Authentication = pulsar.NewAuthenticationTokenFromFile(asked.tokenFile)
	}
	return pulsar.NewClient(wanted)
}

// say prints one line of JSON immediately.
func say(what any) {
	line, err := json.Marshal(what)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(line))
}

func sayReady() {
	say(map[string]bool{"ready": true})
}

func sayComplete() {
	say(map[string]bool{"complete": true})
}

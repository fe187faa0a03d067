// Lets the admission plugin of Kubernetes' API server mutate pods by a MutatingAdmissionPolicy.
//
// It reads a question as JSON from standard input, and writes an answer for each pod.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/client-go/discovery"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/openapi"
	"k8s.io/client-go/openapi/openapitest"
)

const namespace = "tested"

type question struct {
	Policy    *admissionv1.MutatingAdmissionPolicy        `json:"policy"`
	Binding   *admissionv1.MutatingAdmissionPolicyBinding `json:"binding"`
	Namespace map[string]string                           `json:"namespace"`
	Pods      []*corev1.Pod                               `json:"pods"`
}

// answer has the pod that would be stored, or why none would be.
type answer struct {
	Pod   *corev1.Pod `json:"pod,omitempty"`
	Error string      `json:"error,omitempty"`
}

// cluster is a client whose server also publishes the schemas of the core API.
type cluster struct{ *fake.Clientset }

func (c cluster) Discovery() discovery.DiscoveryInterface {
	return schemas{c.Clientset.Discovery()}
}

type schemas struct{ discovery.DiscoveryInterface }

func (schemas) OpenAPIV3() openapi.Client { return openapitest.NewEmbeddedFileClient() }

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	var asked question
	decoder := json.NewDecoder(os.Stdin)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&asked); err != nil {
		return err
	}
	stop := make(chan struct{})
	defer close(stop)
	plugin, err := started(asked, stop)
	if err != nil {
		return err
	}
	answers := []answer{}
	for _, pod := range asked.Pods {
		answers = append(answers, admitted(plugin, pod))
	}
	return json.NewEncoder(os.Stdout).Encode(answers)
}

// started returns the plugin of a server that has the namespace, the policy and its binding.
func started(asked question, stop chan struct{}) (*mutating.Plugin, error) {
	// The server converts to a type of its own and back; here there is one type.
	err := scheme.Scheme.AddConversionFunc((*corev1.Pod)(nil), (*corev1.Pod)(nil),
		func(from, to any, _ conversion.Scope) error {
			from.(*corev1.Pod).DeepCopyInto(to.(*corev1.Pod))
			return nil
		})
	if err != nil {
		return nil, err
	}
	place := &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: asked.Namespace},
	}
	complete(asked.Policy.Spec.MatchConstraints)
	complete(asked.Binding.Spec.MatchResources)
	client := cluster{fake.NewClientset(place, asked.Policy, asked.Binding)}
	shared := informers.NewSharedInformerFactory(client, 0)
	plugin, err := mutating.NewPlugin(nil)
	if err != nil {
		return nil, err
	}
	plugin.SetEnabled(true)
	plugin.SetExternalKubeClientSet(client)
	plugin.SetExternalKubeInformerFactory(shared)
	plugin.SetRESTMapper(meta.NewDefaultRESTMapper(nil))
	plugin.SetDynamicClient(dynamicfake.NewSimpleDynamicClient(runtime.NewScheme()))
	plugin.SetAuthorizer(authorizerfactory.NewAlwaysAllowAuthorizer())
	plugin.SetDrainedNotification(stop)
	if err := plugin.ValidateInitialization(); err != nil {
		return nil, err
	}
	shared.Start(stop)
	shared.WaitForCacheSync(stop)
	return plugin, nil
}

// complete sets what the server sets where a manifest says nothing.
func complete(match *admissionv1.MatchResources) {
	if match == nil {
		return
	}
	if match.NamespaceSelector == nil {
		match.NamespaceSelector = &metav1.LabelSelector{}
	}
	if match.ObjectSelector == nil {
		match.ObjectSelector = &metav1.LabelSelector{}
	}
	if match.MatchPolicy == nil {
		equivalent := admissionv1.Equivalent
		match.MatchPolicy = &equivalent
	}
	for index := range match.ResourceRules {
		if rule := &match.ResourceRules[index].Rule; rule.Scope == nil {
			all := admissionv1.AllScopes
			rule.Scope = &all
		}
	}
}

func admitted(plugin *mutating.Plugin, pod *corev1.Pod) answer {
	kind := corev1.SchemeGroupVersion.WithKind("Pod")
	resource := corev1.SchemeGroupVersion.WithResource("pods")
	pod.Namespace = namespace
	pod.SetGroupVersionKind(kind)
	attributes := admission.NewAttributesRecord(pod, nil, kind, namespace, pod.Name, resource, "",
		admission.Create, &metav1.CreateOptions{}, false, &user.DefaultInfo{Name: "tester"})
	objects := admission.NewObjectInterfacesFromScheme(scheme.Scheme)
	again := attributes.GetReinvocationContext()
	// The server calls its plugins once more after one of them has changed something.
	for range 2 {
		if err := plugin.Admit(context.Background(), attributes, objects); err != nil {
			return answer{Error: err.Error()}
		}
		if !again.ShouldReinvoke() {
			break
		}
		again.SetIsReinvoke()
	}
	return answer{Pod: attributes.GetObject().(*corev1.Pod)}
}

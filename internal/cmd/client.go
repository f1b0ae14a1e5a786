// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/kubectl-gc/kubectl-gc/internal/change"
	"github.com/kubectl-gc/kubectl-gc/internal/cluster"
	"github.com/kubectl-gc/kubectl-gc/internal/explain/evidence"
	"github.com/kubectl-gc/kubectl-gc/internal/offline"
	"github.com/kubectl-gc/kubectl-gc/internal/render"
	"github.com/kubectl-gc/kubectl-gc/pkg/answer"
	"github.com/kubectl-gc/kubectl-gc/pkg/graph"
	"github.com/kubectl-gc/kubectl-gc/pkg/remedy"
)

// session is a command's connection to the cluster. It implements
// genericclioptions.RESTClientGetter for the resource builder, with the
// discovery of this run instead of the one cached on disk.
type session struct {
	*genericclioptions.ConfigFlags
	reader    *cluster.Reader
	config    *rest.Config
	writable  *rest.Config // nil for read commands
	namespace string       // the current one, of --namespace or the context
	enforced  bool         // it is that of --namespace
	// files is what stands for the cluster, nil when that is read itself.
	files *offline.Server
}

// connect reads the kubeconfig and the server's types, or what --from names.
func (g *globals) connect(ctx context.Context, pageSize int64) (*session, error) {
	files, err := g.opened()
	if err != nil {
		return nil, err
	}
	if files != nil {
		return g.connectFile(ctx, files, pageSize)
	}
	config, err := g.config.ToRESTConfig()
	if err != nil {
		return nil, kubeconfigError(err)
	}
	return g.connectWith(ctx, config, pageSize)
}

// connectWith is connect with a configuration that was read.
func (g *globals) connectWith(ctx context.Context, config *rest.Config, pageSize int64) (*session, error) {
	namespace, enforced, err := g.config.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, kubeconfigError(err)
	}
	g.at(config)
	config = g.stats.ReadOnly(config)
	reader, err := cluster.NewReader(ctx, config, g.stats, cluster.Options{PageSize: pageSize, Namespace: namespace, Reading: g.reading()})
	if err != nil {
		return nil, err
	}
	return &session{ConfigFlags: g.config, reader: reader, config: config, namespace: namespace, enforced: enforced}, nil
}

// connectToWrite is connect for the commands that change something.
func (g *globals) connectToWrite(ctx context.Context, pageSize int64) (*session, error) {
	s, err := g.connect(ctx, pageSize)
	if err != nil || s.files != nil {
		return s, err
	}
	if s.writable, err = g.config.ToRESTConfig(); err != nil {
		return nil, kubeconfigError(err)
	}
	g.locate(ctx, s.writable, func(ctx context.Context, id graph.Identity) (types.UID, error) {
		system, err := s.reader.Get(ctx, id.Resource, id.Namespace, id.Name)
		return system.UID, err
	})
	return s, nil
}

// locating is how long the answer to the question which cluster this is may take.
const locating = 5 * time.Second

// at notes the cluster of a configuration, without a password that its URL may have.
func (g *globals) at(config *rest.Config) {
	if g.where != nil {
		return
	}
	g.where = &answer.Where{Context: g.contextName()}
	if u, _, err := rest.DefaultServerUrlFor(config); err == nil {
		u.User = nil
		g.where.Server = u.String()
	}
}

// locate finds out in which cluster the command changes something. read reads the UID of an object; where that fails it is left out.
func (g *globals) locate(ctx context.Context, config *rest.Config, read func(context.Context, graph.Identity) (types.UID, error)) {
	if g.at(config); g.where.UID != "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, locating)
	defer cancel()
	if uid, err := read(ctx, evidence.Identity(evidence.Namespaces, "", metav1.NamespaceSystem)); err == nil {
		g.where.UID = uid
	}
}

// contextName is the context of the kubeconfig, empty inside a cluster.
func (g *globals) contextName() string {
	if named := g.config.Context; named != nil && *named != "" {
		return *named
	}
	raw, err := g.config.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return ""
	}
	return raw.CurrentContext
}

// cluster is what a deletion uses of the connection.
func (s *session) cluster() change.Cluster {
	return change.Live(s.reader, s.writable, remedy.FieldManager)
}

func kubeconfigError(err error) error {
	return hintedError{fmt.Errorf("reading the kubeconfig: %w", err), "check $KUBECONFIG, --kubeconfig and --context"}
}

// ToRESTConfig implements genericclioptions.RESTClientGetter.
func (s *session) ToRESTConfig() (*rest.Config, error) { return s.config, nil }

// ToDiscoveryClient implements genericclioptions.RESTClientGetter.
func (s *session) ToDiscoveryClient() (discovery.CachedDiscoveryInterface, error) {
	return s.reader.Discovery(), nil
}

// ToRESTMapper implements genericclioptions.RESTClientGetter.
func (s *session) ToRESTMapper() (meta.RESTMapper, error) {
	return restmapper.NewShortcutExpander(s.reader.Mapper(), s.reader.Discovery(), nil), nil
}

// finish reports on stderr what could not be read, and with -v=2 what was
// asked of the server.
func (g *globals) finish(s *session, snapshot *graph.Snapshot) error {
	if err := g.warn(s, snapshot); err != nil {
		return err
	}
	return g.finishWarned(s, snapshot)
}

// warn reports on stderr what could not be read: in one line, or with -v=1 each type.
func (g *globals) warn(s *session, snapshot *graph.Snapshot) error {
	if g.verbosity > 0 {
		return render.Warnings(g.ErrOut, snapshot)
	}
	return render.Limited(g.ErrOut, snapshot, s.reader.Resources())
}

// finishWarned is finish where what could not be read was reported before.
func (g *globals) finishWarned(s *session, snapshot *graph.Snapshot) error {
	g.finishStats(s)
	if g.strict && !snapshot.Complete() {
		return errIncomplete
	}
	return nil
}

// finishStats says with -v=2 what was asked of the server.
func (g *globals) finishStats(s *session) {
	if g.verbosity >= 2 {
		fmt.Fprintln(g.ErrOut, s.reader.Stats())
	}
}

// isTerminal reports whether a stream is a terminal.
func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// widthOf returns how many characters a line of a terminal has, 0 for what is none.
func widthOf(stream any) int {
	file, ok := stream.(*os.File)
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return 0
	}
	return width
}

// style decides how text on the writer looks: as --color says, otherwise
// coloured on a terminal unless NO_COLOR is set, and drawn with lines when the
// locale is a UTF-8 one.
func (g *globals) style(w io.Writer) (render.Style, error) {
	terminal, width := isTerminal(w), widthOf(w)
	switch g.color {
	case "always":
		return render.Style{Color: true, Unicode: utf8Locale(), Width: width}, nil
	case "never":
		return render.Style{Unicode: terminal && utf8Locale(), Width: width}, nil
	case "auto":
		plain := os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb"
		return render.Style{Color: terminal && !plain, Unicode: terminal && utf8Locale(), Width: width}, nil
	}
	return render.Style{}, usageError{fmt.Errorf(`invalid --color %q: must be "auto", "always" or "never"`, g.color)}
}

func utf8Locale() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if value := os.Getenv(name); value != "" {
			value = strings.ToUpper(value)
			return strings.Contains(value, "UTF-8") || strings.Contains(value, "UTF8")
		}
	}
	return false
}

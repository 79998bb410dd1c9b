package servertest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// Hosts are network namespaces of Linux, each with an address in a network of their own, as computers
// beside this one, which has Address.
type Hosts struct {
	Address string // of this process in the network

	network   string // the name of the bridge
	names     []string
	mu        sync.Mutex
	listeners []net.Listener
	open      map[net.Conn]bool
	copying   sync.WaitGroup
}

// networks counts the networks of this process, so that they have different addresses.
var networks atomic.Int32

// NeedHosts makes n hosts, which end with the test. It skips the test where this process may not make
// them: they need root. Without the program ip of iproute2, see Need.
func NeedHosts(t testing.TB, n int) *Hosts {
	t.Helper()
	h, err := startHosts(n)
	if err != nil && strings.Contains(err.Error(), "not permitted") {
		t.Skipf("SKIPPED, NOT TESTED: %v", err)
	}
	Need(t, err)
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// startHosts makes n hosts.
func startHosts(n int) (h *Hosts, err error) {
	if _, err := exec.LookPath("ip"); err != nil || runtime.GOOS != "linux" {
		return nil, fmt.Errorf("%w: network namespaces need Linux and the program ip", ErrMissing)
	}
	for range 200 { // other processes may have networks, too
		number := networks.Add(1)
		h = &Hosts{network: fmt.Sprintf("qt%d", number), Address: fmt.Sprintf("10.203.%d.1", number), open: map[net.Conn]bool{}}
		err = ip("link", "add", h.network, "type", "bridge")
		if err == nil || !strings.Contains(err.Error(), "exists") {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	err = errors.Join(ip("addr", "add", h.Address+"/24", "dev", h.network), ip("link", "set", h.network, "up"))
	for i := range n {
		if err == nil {
			err = h.add(i)
		}
	}
	if err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return h, nil
}

// ip runs the program ip.
func ip(args ...string) error {
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// cable returns the name of the end of the cable of a host that is at the bridge.
func (h *Hosts) cable(i int) string { return fmt.Sprintf("%sc%d", h.network, i) }

// add makes a host.
func (h *Hosts) add(i int) error {
	name := fmt.Sprintf("%sh%d", h.network, i)
	if err := ip("netns", "add", name); err != nil {
		return err
	}
	h.names = append(h.names, name)
	address := strings.TrimSuffix(h.Address, "1") + fmt.Sprint(10+i)
	for _, args := range []string{
		"link add " + h.cable(i) + " type veth peer name eth0 netns " + name,
		"link set " + h.cable(i) + " master " + h.network + " up",
		"-n " + name + " addr add " + address + "/24 dev eth0",
		"-n " + name + " link set eth0 up",
		"-n " + name + " link set lo up",
	} {
		if err := ip(strings.Fields(args)...); err != nil {
			return err
		}
	}
	return nil
}

// Command returns a command that runs on host i, counted from 0.
func (h *Hosts) Command(ctx context.Context, i int, name string, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "ip", append([]string{"netns", "exec", h.names[i], name}, args...)...)
}

// Cut removes host i from the network: what it sends, and what is sent to it, is lost.
func (h *Hosts) Cut(i int) error { return ip("link", "set", h.cable(i), "down") }

// Heal is the inverse of Cut.
func (h *Hosts) Heal(i int) error { return ip("link", "set", h.cable(i), "up") }

// Forward lets hosts reach an address of this computer, and returns the address for them.
func (h *Hosts) Forward(target string) (address string, err error) {
	l, err := net.Listen("tcp", net.JoinHostPort(h.Address, "0"))
	if err != nil {
		return "", err
	}
	h.mu.Lock()
	h.listeners = append(h.listeners, l)
	h.mu.Unlock()
	h.copying.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", target)
			if err != nil {
				_ = in.Close()
				continue
			}
			h.join(in, out)
		}
	})
	return l.Addr().String(), nil
}

// join copies between two connections until one of them ends.
func (h *Hosts) join(a, b net.Conn) {
	h.mu.Lock()
	h.open[a], h.open[b] = true, true
	h.mu.Unlock()
	for _, pair := range [][2]net.Conn{{a, b}, {b, a}} {
		h.copying.Go(func() {
			_, _ = io.Copy(pair[0], pair[1]) // the end of either is the end of both
			h.mu.Lock()
			defer h.mu.Unlock()
			for _, c := range pair {
				delete(h.open, c)
				_ = c.Close()
			}
		})
	}
}

// Close removes the hosts. Their processes must have ended.
func (h *Hosts) Close() error {
	h.mu.Lock()
	for _, l := range h.listeners {
		_ = l.Close()
	}
	for c := range h.open {
		_ = c.Close()
	}
	h.mu.Unlock()
	h.copying.Wait()
	var err error
	for _, name := range h.names {
		err = errors.Join(err, ip("netns", "del", name))
	}
	return errors.Join(err, ip("link", "del", h.network))
}

package containment

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// isolated returns the arguments of bubblewrap without files: new namespaces, no
// capabilities, no terminal, and the end of all processes with that of the parent.
func isolated() []string {
	return []string{"--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"}
}

// systemFolders are the folders of programs and libraries.
func systemFolders() []string {
	return []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store"}
}

// systemFiles are files of /etc that programs and libraries need, none of them secret.
func systemFiles() []string {
	return []string{"/etc/alternatives", "/etc/ca-certificates", "/etc/group", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime",
		"/etc/mime.types", "/etc/nsswitch.conf", "/etc/passwd", "/etc/pki/ca-trust", "/etc/pki/tls/certs", "/etc/ssl/certs", "/etc/ssl/openssl.cnf"}
}

// networkFiles are files of /etc by which names are resolved.
func networkFiles() []string {
	return []string{"/etc/gai.conf", "/etc/host.conf", "/etc/hosts", "/etc/resolv.conf", "/etc/services"}
}

// bwrapArgs returns the arguments of bubblewrap before the program.
func (c *Container) bwrapArgs(program string, folders []string) []string {
	args := isolated()
	if c.network {
		args = append(args, "--share-net")
	}
	reached := c.mounts(program, folders)
	if i := slices.IndexFunc(reached, func(m mount) bool { return m.path == "/" }); i >= 0 {
		args = append(args, bind(reached[i]), "/", "/")
		reached = slices.Delete(reached, i, i+1)
	} else {
		args = append(args, c.system()...)
	}
	args = append(args, "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp")
	for _, m := range reached {
		if m.writable || !isSystem(m.path) {
			args = append(args, bind(m), m.path, m.path)
		}
	}
	for _, file := range c.hidden(folders) {
		args = append(args, "--ro-bind", os.DevNull, file)
	}
	return append(args, "--remount-ro", "/", "--chdir", workingFolder(reached), "--")
}

// isSystem reports whether a path is in a folder of programs and libraries.
func isSystem(path string) bool {
	return slices.ContainsFunc(systemFolders(), func(folder string) bool { return isBelow(folder, path) })
}

// bind returns the option of a mount.
func bind(m mount) string {
	if m.writable {
		return "--bind"
	}
	return "--ro-bind"
}

// system returns the arguments for programs, libraries and their settings.
func (c *Container) system() []string {
	var args []string
	for _, folder := range systemFolders() {
		if target, err := os.Readlink(folder); err == nil {
			args = append(args, "--symlink", target, folder)
		} else {
			args = append(args, "--ro-bind-try", folder, folder)
		}
	}
	files := systemFiles()
	if c.network {
		files = append(files, networkFiles()...)
	}
	for _, file := range files {
		args = append(args, "--ro-bind-try", file, file)
	}
	return args
}

// mount is a file or a folder that a program can reach at its own path.
type mount struct {
	path     string
	writable bool
}

// mounts returns what a program can reach in addition to the system, sorted, a folder
// before its contents: the file of the program, folders, and what the document declares.
func (c *Container) mounts(program string, folders []string) []mount {
	writable := map[string]bool{}
	add := func(to bool, paths ...string) {
		for _, path := range paths {
			writable[path] = writable[path] || to
		}
	}
	if filepath.IsAbs(program) {
		add(false, program)
		if target, err := filepath.EvalSymlinks(program); err == nil {
			add(false, target)
		}
	}
	add(false, folders...)
	add(false, c.read...)
	add(true, c.write...)
	var all []mount
	for _, path := range slices.Sorted(maps.Keys(writable)) {
		all = append(all, mount{path, writable[path]})
	}
	return all
}

// hidden returns the .env files of folders that the document does not declare.
func (c *Container) hidden(folders []string) []string {
	var all []string
	for _, folder := range folders {
		file := filepath.Join(folder, ".env")
		declared := slices.Contains(c.read, file) || slices.Contains(c.write, file) || slices.Contains(c.read, folder) || slices.Contains(c.write, folder)
		if info, err := os.Lstat(file); err == nil && info.Mode().IsRegular() && !declared && !slices.Contains(all, file) {
			all = append(all, file)
		}
	}
	return all
}

// workingFolder returns the working folder of a program: that of this process if the
// program can reach it, otherwise /tmp.
func workingFolder(reached []mount) string {
	here, err := os.Getwd()
	if err != nil {
		return "/tmp"
	}
	if slices.ContainsFunc(reached, func(m mount) bool { return isBelow(m.path, here) }) {
		return here
	}
	return "/tmp"
}

// isBelow reports whether an absolute path is a folder or below it.
func isBelow(folder, path string) bool {
	rel, err := filepath.Rel(folder, path)
	return err == nil && filepath.IsLocal(rel)
}

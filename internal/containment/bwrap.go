package containment

import (
	"os"
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

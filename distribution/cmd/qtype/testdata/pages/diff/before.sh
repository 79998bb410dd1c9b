git init -q -b main .
git add app.qtype.yaml
git -c user.name=t -c user.email=t@example.com commit -qm one
git update-ref refs/remotes/origin/main HEAD

"""Reads secrets of Vault's key-value engines, versions 2 and 1, with the client hvac.

vault_client.py ADDRESS
"""

import sys

import hvac

client = hvac.Client(url=sys.argv[1])
client.auth.approle.login(role_id="shop", secret_id="sign-in")
newer = client.secrets.kv.v2.read_secret_version(path="shop/key", raise_on_deleted_version=True)
older = client.secrets.kv.v1.read_secret(path="key", mount_point="kv")
print(newer["data"]["data"]["value"], older["data"]["value"])

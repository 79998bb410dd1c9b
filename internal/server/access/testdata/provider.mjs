// An OpenID provider on a port: node provider.mjs NODE_MODULES PORT. It issues access
// tokens as signed JWTs to two clients.
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'

const [modules, port] = process.argv.slice(2)
const file = createRequire(modules + '/').resolve('oidc-provider')
const { Provider } = await import(pathToFileURL(file))
const issuer = `http://127.0.0.1:${port}`

const client = (id) => ({
  client_id: id,
  client_secret: 'secret-of-' + id,
  grant_types: ['client_credentials'],
  redirect_uris: [],
  response_types: [],
})

const provider = new Provider(issuer, {
  clients: [client('ada'), client('ci')],
  scopes: ['flows'],
  features: {
    clientCredentials: { enabled: true },
    devInteractions: { enabled: false },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: (_ctx, resource) => ({
        scope: 'flows',
        audience: resource,
        accessTokenFormat: 'jwt',
        accessTokenTTL: resource.endsWith('/short') ? 1 : 600,
        jwt: { sign: { alg: 'RS256' } },
      }),
    },
  },
  extraTokenClaims: (_ctx, token) => ({ roles: [token.clientId === 'ada' ? 'admin' : 'build'] }),
})
provider.listen(Number(port), '127.0.0.1', () => console.log('ready'))

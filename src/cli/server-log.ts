import { readFileSync } from 'node:fs'
import { ArgumentError } from 'rivulet'
import type { LogStore } from 'rivulet/log/store'
import type { NatsCredentials, natsStore as NatsStore } from 'rivulet/log/nats'
import { variable } from './environment.ts'
import { UsageError } from './exit.ts'

const ADDRESS = /^([a-z][a-z\d+.-]*):\/\/(.*)$/is

const PACKAGES = '@nats-io/transport-node @nats-io/jetstream @nats-io/kv'

/**
 * Whether a text is an address of a server, and not a path. An address that lacks its slashes counts, too, since a file of that name could
 * show a password.
 */
export function isServerAddress(place: string): boolean {
  return ADDRESS.test(place) || /^(?:nats|tls):/i.test(place)
}

/**
 * The log of an address such as `nats://host:4222/NAME`, with the credentials of the environment.
 *
 * @throws {UsageError} for another address, and if the environment is invalid. It has no part of an address that may be secret.
 */
export async function serverLog(address: string, create: boolean): Promise<LogStore> {
  const { servers, name } = serversOf(address)
  const credentials = credentialsOfEnvironment()
  const caFile = variable('RIVULET_NATS_CA_FILE')
  if (caFile !== undefined) readable('RIVULET_NATS_CA_FILE', caFile)
  const { natsStore } = await natsEntry()
  try {
    return natsStore({
      servers,
      name,
      create,
      ...(credentials !== undefined && { credentials }),
      ...(caFile !== undefined && { tls: { caFile } }),
    })
  } catch (error) {
    const isRefused = error instanceof ArgumentError && error.argument === 'credentials'
    if (!isRefused) throw error
    throw new UsageError(
      'RIVULET_NATS_CREDS_FILE: the file is not the text of a .creds file, with a JWT and its seed',
    )
  }
}

function serversOf(address: string): { readonly servers: readonly string[]; readonly name: string } {
  const [, scheme = '', rest = ''] = ADDRESS.exec(address) ?? []
  const isKnown = ['nats', 'tls'].includes(scheme.toLowerCase())
  if (!isKnown) throw new UsageError('a log is a file, nats://host:4222/NAME or tls://host:4222/NAME')
  if (rest.includes('@')) {
    throw new UsageError(
      `the address of a log has no credentials, which others could read on a command line: set ` +
        `RIVULET_NATS_CREDS_FILE, RIVULET_NATS_USER and RIVULET_NATS_PASSWORD, or RIVULET_NATS_TOKEN`,
    )
  }
  const [, hosts = '', name = ''] = /^([^/?#]+)\/([\w-]{1,64})$/.exec(rest) ?? []
  const servers = hosts.split(',').map((host) => `${scheme.toLowerCase()}://${host}`)
  if (name === '' || !servers.every((server) => URL.canParse(server))) {
    throw new UsageError(
      `the address of a log is like ${scheme}://host:4222/NAME, with a name of letters, digits, "-" and "_"`,
    )
  }
  return { servers, name }
}

function credentialsOfEnvironment(): NatsCredentials | undefined {
  const [file, user, password, token] = [
    variable('RIVULET_NATS_CREDS_FILE'),
    variable('RIVULET_NATS_USER'),
    variable('RIVULET_NATS_PASSWORD'),
    variable('RIVULET_NATS_TOKEN'),
  ]
  if ([file, user ?? password, token].filter((each) => each !== undefined).length > 1) {
    throw new UsageError(
      'use one of RIVULET_NATS_CREDS_FILE, RIVULET_NATS_USER with RIVULET_NATS_PASSWORD, and RIVULET_NATS_TOKEN',
    )
  }
  if (file !== undefined) return { creds: readable('RIVULET_NATS_CREDS_FILE', file) }
  if (token !== undefined) return { token }
  if (user === undefined && password === undefined) return undefined
  if (user !== undefined && password !== undefined) return { user, password }
  throw new UsageError('RIVULET_NATS_USER and RIVULET_NATS_PASSWORD go together')
}

function readable(name: string, file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    const problem = error instanceof Error && 'code' in error ? String(error.code) : 'it cannot be read'
    throw new UsageError(`${name}: ${file} cannot be read (${problem})`)
  }
}

/** Its packages are optional. */
async function natsEntry(): Promise<{ readonly natsStore: typeof NatsStore }> {
  try {
    return await import('rivulet/log/nats')
  } catch (error) {
    const isMissing = error instanceof Error && 'code' in error && error.code === 'ERR_MODULE_NOT_FOUND'
    if (isMissing && error.message.includes('@nats-io/')) {
      throw new UsageError(`a log on a NATS server needs three packages: npm install ${PACKAGES}`)
    }
    throw error
  }
}

interface Variable {
  readonly meaning: string
  readonly usedBy: string
  /** Empty if there is none. */
  readonly defaultValue: string
  readonly isSecret: boolean
}

const CLIENT = 'each command with --base-url'
const LOG = 'each command with --log nats://…'

/** The environment variables of the command, as `rivulet --help` and docs/reference/command.md list them. */
export const VARIABLES = {
  RIVULET_BASE_URL: setting('address of the service', CLIENT),
  RIVULET_API_KEY: secret(
    'API key of the service',
    `${CLIENT}; serve, which requires it of its clients`,
    'random for serve',
  ),
  RIVULET_BETA_HEADER: setting('name of the header that enables beta features', CLIENT, 'service-beta'),
  RIVULET_WEBHOOK_SECRET: secret(
    'secret that signs webhooks',
    'watch and record, with --webhook-port; serve',
    'random for serve',
  ),
  RIVULET_MODEL_KEY: secret('API key of the model server', 'serve, with --model-url'),
  RIVULET_MCP_TOKEN: secret('token that agents send', 'mcp, with --http', 'random'),
  RIVULET_NATS_CREDS_FILE: setting('path of a .creds file', LOG),
  RIVULET_NATS_USER: setting('user, instead of a .creds file', LOG),
  RIVULET_NATS_PASSWORD: secret('password of the user', LOG),
  RIVULET_NATS_TOKEN: secret('token, instead of a .creds file', LOG),
  RIVULET_NATS_CA_FILE: setting('authorities of the certificate, in PEM', LOG, 'those of Node'),
  RIVULET_LOG_LEVEL: setting(
    'level of the messages on stderr: trace, debug, info, warn, error, fatal or silent',
    `${CLIENT}; start, serve, dashboard, log tail and rules run`,
    'info, error for start',
  ),
}

function setting(meaning: string, usedBy: string, defaultValue = ''): Variable {
  return { meaning, usedBy, defaultValue, isSecret: false }
}

function secret(meaning: string, usedBy: string, defaultValue = ''): Variable {
  return { ...setting(meaning, usedBy, defaultValue), isSecret: true }
}

/** The value of an environment variable. Undefined for an empty one. */
export function variable(name: keyof typeof VARIABLES): string | undefined {
  return process.env[name] || undefined
}

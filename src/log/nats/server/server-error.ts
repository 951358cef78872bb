import { JetStreamApiError, JetStreamError } from '@nats-io/jetstream'
import { errors } from '@nats-io/transport-node'
import { LogServerError } from '../../errors.ts'

/** Errors of the client if a server does not answer, or no longer answers. */
const UNREACHABLE = [
  errors.TimeoutError,
  errors.RequestError,
  errors.NoRespondersError,
  errors.ConnectionError,
  errors.ClosedConnectionError,
  errors.DrainingConnectionError,
  errors.ProtocolError,
  JetStreamError,
]

/** Errors of the client if a server wants other credentials. */
const REFUSED = [errors.AuthorizationError, errors.UserAuthenticationExpiredError]

/** Turns an error of the client into one of the log. Other errors stay as they are. */
export function serverError(log: string, error: unknown): unknown {
  if (error instanceof JetStreamApiError) {
    // Not enough of its cluster is there, or it is electing a leader.
    const retryable = error.status === 503 || error.status === 408
    return new LogServerError(log, `was refused by its server: ${error.message}`, { cause: error, retryable })
  }
  if (!(error instanceof Error)) return error
  if (error.name === 'JetStreamNotEnabled') {
    // So it looks too while a server starts, or a stream has no leader.
    return new LogServerError(log, 'is at a server without JetStream, or one that is not ready', {
      cause: error,
      retryable: true,
    })
  }
  if (isRefused(error) || error instanceof errors.PermissionViolationError) {
    return new LogServerError(log, `was refused by its server: ${error.message}`, { cause: error })
  }
  if (isOfTls(error)) {
    const problem =
      `cannot be reached by TLS: ${error.message}. The certificate must be for the server's host name, and of an authority that is ` +
      'known: name those of the server with `tls`, or for the command in RIVULET_NATS_CA_FILE'
    return new LogServerError(log, problem, { cause: error })
  }
  if (!UNREACHABLE.some((known) => error instanceof known) && !isOfNetwork(error)) return error
  return new LogServerError(log, `cannot be reached: ${error.message}`, { cause: error, retryable: true })
}

/** Whether a server wants other credentials. */
export function isRefused(error: Error): boolean {
  return REFUSED.some((known) => error instanceof known)
}

/** Whether a certificate was refused here, as the codes of Node say. */
function isOfTls(error: Error): boolean {
  const code = 'code' in error ? String(error.code) : ''
  return /^(?:CERT_|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|INVALID_CA|HOSTNAME_MISMATCH|ERR_(?:TLS|SSL|OSSL)_)/.test(
    code,
  )
}

/** Whether the system has failed to find a host, or to connect to it. The client passes some of these on. */
function isOfNetwork(error: Error): boolean {
  return 'syscall' in error && ['getaddrinfo', 'connect', 'read', 'write'].includes(String(error.syscall))
}

/** Whether the same call may succeed later, after this error of the client. */
export function isTransient(cause: unknown): boolean {
  const error = serverError('', cause)
  return error instanceof LogServerError && error.retryable
}

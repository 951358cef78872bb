import { describe, expect, it } from 'vitest'
import { LogServerError } from '../../../src/log/errors.ts'
import { serverError } from '../../../src/log/nats/server/server-error.ts'

describe('the error of a log whose server cannot be used', () => {
  it.each([
    ['DEPTH_ZERO_SELF_SIGNED_CERT', 'self-signed certificate'],
    ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'unable to verify the first certificate'],
    ['CERT_HAS_EXPIRED', 'certificate has expired'],
    ['ERR_TLS_CERT_ALTNAME_INVALID', "Hostname/IP does not match certificate's altnames"],
  ])('has what to do about a certificate that is refused: %s', (code, message) => {
    const cause = Object.assign(new Error(message), { code })
    const error = serverError('the log "watch"', cause)
    expect(error).toBeInstanceOf(LogServerError)
    // Another certificate does not come by itself.
    expect(error).toMatchObject({ cause, retryable: false })
    expect(String(error)).toContain(message)
    expect(String(error)).toContain('RIVULET_NATS_CA_FILE')
  })

  it('leaves what is no error of a server as it is', () => {
    const other = Object.assign(new Error('other'), { code: 'ENOENT' })
    expect(serverError('the log "watch"', other)).toBe(other)
  })
})

import { headers } from '@nats-io/transport-node'
import type { MsgHdrs } from '@nats-io/transport-node'
import { describe, expect, it } from 'vitest'
import { fieldReader } from '../../../src/log/nats/message-fields.ts'

const LINES = ['Nats-Msg-Id: 1', 'Rv-Entry:  a 1 7 ', 'Rv-Entry: second', 'Name: Zürich', 'Rv-Parts:']
const FIELDS = `NATS/1.0\r\n${LINES.join('\r\n')}\r\n\r\n`

/** As the client decodes them. */
function decoded(): MsgHdrs {
  const fields = headers()
  for (const line of LINES) {
    const [name = '', value = ''] = line.split(':')
    fields.append(name, value)
  }
  return fields
}

/** A payload after other bytes in the same memory. */
function payloadAfter(before: string, payload = 'payload'): Uint8Array {
  const bytes = new TextEncoder().encode(before + payload)
  return bytes.subarray(bytes.length - new TextEncoder().encode(payload).length)
}

const NAMES = ['Nats-Msg-Id', 'Rv-Entry', 'rv-entry', 'Entry', 'Name', 'Rv-Parts', 'Rv-Missing', 'NATS/1.0']

/** The values of all names, with the client's fields or without them. */
function valuesOf(data: Uint8Array, fields?: MsgHdrs): readonly string[] {
  const message = fields === undefined ? { data } : { data, headers: fields }
  return NAMES.map(fieldReader(message))
}

describe('the fields of a message', () => {
  const expected = valuesOf(new Uint8Array(0), decoded())

  it('are the same before the payload as the client decodes them', () => {
    expect(expected).toEqual(['1', 'a 1 7', '', '', 'Zürich', '', '', ''])
    const others = `HMSG s 1 9 9\r\n${FIELDS.replace('a 1 7', 'other')}other\r\nHMSG s 1 9 9\r\n`
    for (const before of ['', 'HMSG s 1 9 9\r\n', others]) {
      expect(valuesOf(payloadAfter(before + FIELDS))).toEqual(expected)
      expect(valuesOf(payloadAfter(before + FIELDS, ''))).toEqual(expected)
    }
  })

  it('are not those of an earlier message', () => {
    const earlier = `HMSG s 1 9 9\r\n${FIELDS}earlier\r\nMSG s 1 7\r\n`
    expect(valuesOf(payloadAfter(earlier))).toEqual(NAMES.map(() => ''))
    // Its payload ends as fields do.
    expect(valuesOf(payloadAfter(`${FIELDS}earlier\r\n\r\n`))).toEqual(NAMES.map(() => ''))
  })

  it.each([
    ['in other memory', payloadAfter('')],
    ['not directly before the payload', payloadAfter(`${FIELDS}.`)],
    ['cut', payloadAfter(FIELDS.slice(1))],
    ['behind a value that looks like a beginning', payloadAfter('HMSG\r\nNATS/1.0\r\nA: NATS/1.0\r\n\r\n')],
    ['too long', payloadAfter(`HMSG\r\nNATS/1.0\r\nA: ${'a'.repeat(5_000)}\r\n\r\n`)],
    [
      'at the edge of what is searched',
      payloadAfter(`HMSG\r\nNATS/1.0\r\nA: ${'a'.repeat(4_096 - 17)}\r\n\r\n`),
    ],
  ])('are decoded by the client where they are %s', (_, data) => {
    expect(valuesOf(data, decoded())).toEqual(expected)
  })
})

import { readFileSync } from 'node:fs'
import type { Fault, FaultKind } from 'rivulet/service'
import { describe, expect, it } from 'vitest'
import { FAULTS_HELP, parseFault } from '../../src/cli/faults.ts'
import { Faults } from '../../src/service/faults/faults.ts'

const EVERY_KIND: Readonly<Record<FaultKind, readonly [text: string, fault: Fault]>> = {
  cut: ['cut:after=3,at=chunk,times=2', { kind: 'cut', after: 3, at: 'chunk', times: 2 }],
  stall: ['stall:after=1', { kind: 'stall', after: 1 }],
  close: ['close', { kind: 'close' }],
  slow: [
    'slow:bytes=2,interval=5,after=1,path=/v1beta',
    { kind: 'slow', bytes: 2, interval: 5, after: 1, path: '/v1beta' },
  ],
  'repeat-events': [
    'repeat-events:count=2,path=/v1beta,times=1',
    { kind: 'repeat-events', count: 2, path: '/v1beta', times: 1 },
  ],
  'deleted-group': [
    'deleted-group:group=tgrp_1,after=2,times=1',
    { kind: 'deleted-group', group: 'tgrp_1', after: 2, times: 1 },
  ],
  malformed: ['malformed:path=/v1/search', { kind: 'malformed', path: '/v1/search' }],
  gzip: ['gzip:times=1', { kind: 'gzip', times: 1 }],
  'wrong-type': ['wrong-type:times=1', { kind: 'wrong-type', times: 1 }],
  truncated: ['truncated:path=/v1/monitors', { kind: 'truncated', path: '/v1/monitors' }],
  status: [
    'status:status=429,retryAfter=1,retryAfterForm=date,path=/v1/search',
    { kind: 'status', status: 429, retryAfter: 1, retryAfterForm: 'date', path: '/v1/search' },
  ],
  'invalid-cursor': ['invalid-cursor:times=1', { kind: 'invalid-cursor', times: 1 }],
  repeat: ['repeat', { kind: 'repeat' }],
  reorder: ['reorder:times=1', { kind: 'reorder', times: 1 }],
  delay: ['delay:by=30000', { kind: 'delay', by: 30_000 }],
  lose: ['lose:times=3', { kind: 'lose', times: 3 }],
  'lose-answer': ['lose-answer', { kind: 'lose-answer' }],
}

describe('a fault on the command line', () => {
  it.each(Object.values(EVERY_KIND))('%s is parsed into its kind and options', (text, fault) => {
    expect(parseFault(text)).toEqual(fault)
  })

  it.each(Object.values(EVERY_KIND))('%s is accepted by the service', (text) => {
    expect(() => new Faults().add(parseFault(text))).not.toThrow()
  })

  it.each([
    ['boom', /no fault "boom"\. The faults are cut, stall, close/],
    ['toString', /no fault "toString"/],
    ['delay', /by is missing\. Its syntax is delay:by=MS/],
    ['cut:after=many', /after must be a whole number of at least 0, got "many"/],
    ['cut:after=1.5', /after must be a whole number/],
    ['cut:at=once', /at must be one of event, line, character, chunk, got "once"/],
    ['cut:after=3,times=0', /times must be a whole number of at least 1/],
    ['cut:after=3,after=4', /after is given twice/],
    ['cut:after=3,color=red', /it has no option "color"/],
    ['repeat:path=/v1', /it has no option "path"/],
    ['cut:after', /"after" is not name=value/],
    ['status:status=200', /status must be a whole number from 400 to 599/],
  ])('is refused as %s, with the reason', (text, message) => {
    expect(() => parseFault(text)).toThrow(message)
  })

  it.each(Object.keys(EVERY_KIND))('%s is explained in the help', (kind) => {
    expect(FAULTS_HELP).toContain(`\n  ${kind}:`)
  })
})

describe('the page about faults', () => {
  const page = readFileSync('docs/reference/faults.md', 'utf8')

  it.each(Object.keys(EVERY_KIND))('documents %s, for programs and for the command line', (kind) => {
    expect(page).toContain(`{ kind: '${kind}'`)
    expect(page).toMatch(new RegExp(`--fault ${kind}[\`: ]`))
  })

  it('has only valid command lines, each equal to the object next to it', () => {
    const rows = page.split('\n').filter((line) => line.includes('`--fault '))
    for (const row of rows) {
      const [, text = ''] = /`--fault ([^`]+)`/.exec(row) ?? []
      const [, program = ''] = /`(\{ kind: [^`]+\})`/.exec(row) ?? []
      expect(parseFault(text)).toEqual(faultOf(program))
    }
    expect(rows.length).toBeGreaterThanOrEqual(Object.keys(EVERY_KIND).length)
  })
})

/** Parses an object literal. */
function faultOf(program: string): unknown {
  return JSON.parse(
    program
      .replaceAll(/(\w+):/g, '"$1":')
      .replaceAll("'", '"')
      .replaceAll(/(\d)_(\d)/g, '$1$2'),
  )
}

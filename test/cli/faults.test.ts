import { describe, expect, it } from 'vitest'
import { FAULTS_HELP, parseFault } from '../../src/cli/faults.ts'

describe('a fault on the command line', () => {
  it('is its kind and its fields', () => {
    expect(parseFault('cut:after=3,times=2')).toEqual({ kind: 'cut', after: 3, times: 2 })
    expect(parseFault('status:status=429,retryAfter=1,path=/v1/search')).toEqual({
      kind: 'status',
      status: 429,
      retryAfter: 1,
      path: '/v1/search',
    })
    expect(parseFault('reorder:times=1')).toEqual({ kind: 'reorder', times: 1 })
  })

  it('may be a kind alone, where no field must be there', () => {
    expect(parseFault('repeat')).toEqual({ kind: 'repeat' })
  })

  it.each([
    ['boom', /no fault "boom", only cut, status, repeat, reorder/],
    ['toString', /no fault "toString"/],
    ['cut', /after is missing\. It is written cut:after=N/],
    ['cut:after=many', /after must be a whole number of at least 0, got "many"/],
    ['cut:after=1.5', /after must be a whole number/],
    ['cut:after=3,times=0', /times must be a whole number of at least 1/],
    ['cut:after=3,after=4', /after is there twice/],
    ['cut:after=3,color=red', /it has no "color"/],
    ['cut:after', /"after" is not name=value/],
    ['status:status=200', /status must be a whole number from 400 to 599/],
  ])('is refused as %s, and the message says why', (text, message) => {
    expect(() => parseFault(text)).toThrow(message)
  })

  it('is explained in the help, kind by kind', () => {
    for (const kind of ['cut:', 'status:', 'repeat', 'reorder']) expect(FAULTS_HELP).toContain(`\n  ${kind}`)
  })
})

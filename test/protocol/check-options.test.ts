import { describe, expect, it } from 'vitest'
import { ArgumentError, hidden, shownUrl } from '../../src/protocol/argument-error.ts'
import { checkOptions } from '../../src/protocol/check.ts'

const known = ['pollInterval', 'include_completions', 'signal', 'apiKey', 'status']

describe('checkOptions', () => {
  it.each([undefined, {}, { signal: undefined, pollInterval: 5 }])('accepts %o', (options) => {
    expect(() => checkOptions('options', options, known)).not.toThrow()
  })

  it.each([
    ['pollIntervall', 'did you mean pollInterval?'],
    ['poll_interval', 'did you mean pollInterval?'],
    ['includeCompletions', 'did you mean include_completions?'],
    ['apikey', 'did you mean apiKey?'],
    ['stauts', 'did you mean status?'],
    ['colour', 'known are apiKey, include_completions, pollInterval, signal, status'],
    ['__proto', 'known are'],
  ])('refuses %s with a suggestion', (name, hint) => {
    const refused = () => checkOptions('options', { [name]: 'secret-value' }, known)

    expect(refused).toThrow(ArgumentError)
    expect(refused).toThrow(`options has no option ${name}; ${hint}`)
    expect(refused).toThrow(expect.objectContaining({ argument: name, value: undefined }))
  })

  it.each([null, 5, 'text', []])('refuses %o, which is not an object', (options) => {
    expect(() => checkOptions('options', options, known)).toThrow('options must be an object')
  })

  it('does not show a key that is given in the place of options', () => {
    const refused = () => checkOptions('options', 'sesame', known)

    expect(refused).toThrow('options must be an object, got a string (not shown)')
    expect(refused).toThrow(expect.objectContaining({ value: '(not shown)' }))
  })
})

describe('the value in an ArgumentError', () => {
  it.each([
    [hidden(''), 'an empty string'],
    [hidden('sesame'), 'a string (not shown)'],
    [hidden(undefined), 'undefined'],
    [hidden(['sesame']), 'an array of 1'],
    [hidden(123_456), 'a number'],
    [
      shownUrl('ftp://me:sesame@example.org/a?key=sesame'),
      '"ftp://example.org/a" (without its credentials and query)',
    ],
    [shownUrl('http://example.org/a'), '"http://example.org/a"'],
    [shownUrl('sesame:open'), 'a string (not shown)'],
    [shownUrl('sesame'), 'a string (not shown)'],
    [() => 'sesame', 'a function'],
    ['x'.repeat(99), `"${'x'.repeat(60)}"…`],
  ])('%o is %s', (value, description) => {
    const error = new ArgumentError('thing', 'right', value)

    expect(error.message).toBe(`thing must be right, got ${description}`)
  })

  it('hides a value that may be secret', () => {
    expect(new ArgumentError('apiKey', 'right', hidden('sesame')).value).toBe('(not shown)')
  })
})

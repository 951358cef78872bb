import { describe, expect, it } from 'vitest'
import { parseDocument } from '../../../src/service/corpus/document.ts'

function parse(relative: string, content: string | Uint8Array, root = '/docs') {
  const bytes = typeof content === 'string' ? Buffer.from(content) : content
  return parseDocument(
    { root, relative, path: `${root}/${relative}`, modified: Date.UTC(2024, 1, 29) },
    bytes,
  )
}

describe('parseDocument', () => {
  it('keeps Markdown unchanged, without its front matter', () => {
    const document = parse(
      'a.md',
      '---\ntitle: Given\ndate: 2023-05-06T10:00:00Z\nurl: https://example.org/a#part\n---\n\n# Heading\n\n*Text* with [link](x).\n',
    )
    expect(document).toEqual({
      url: 'https://example.org/a',
      title: 'Given',
      publishDate: '2023-05-06',
      kind: 'page',
      text: '# Heading\n\n*Text* with [link](x).',
    })
  })

  it('does not mistake a thematic break for front matter', () => {
    expect(parse('a.md', '---\nnot a mapping\n---\ntext')?.text).toBe('---\nnot a mapping\n---\ntext')
    expect(parse('a.md', '---\na: [broken\n---\ntext')?.text).toContain('broken')
  })

  it.each([
    ['# A `first` heading #', 'A first heading'],
    ['text\n\nUnderlined\n===\n', 'Underlined'],
    ['```sh\n# comment\n```\n\n## Real', 'Real'],
    ['# [![badge](b.svg)](x) Name [![other][1]][2]', 'Name'],
    ['# [![badge](<b.svg?label=(stable)>)](x) Name', 'Name'],
    ['# ![the logo](logo.png)', 'the logo'],
    ['<h1 align="center">\n  <img src="x" alt="Logo"> Named\n</h1>', 'Named'],
    ['# ![a logo](a.png) <img alt="and another" src="b.png">', 'a logo and another'],
    ['# AT&amp;T&nbsp;and *more* ~~less~~ of `a*b` <b>bold</b>', 'AT&T and more less of a*b bold'],
    ['# [Unreleased] list[0] of [this][ref]', '[Unreleased] list[0] of this'],
    ['[menu](#menu)\n\nName\n====\nwhat it is', 'Name'],
    ['<h2>\n\n  <a href="x"><b>Behind</b> a blank line</a>\n\n</h2>', 'Behind a blank line'],
    ['<h1>never ends\n\n## Real', 'Real'],
    ['<h1></h1>\n\n## Real', 'Real'],
    ['no heading', 'a'],
    ['---\ntitle: "two\\n lines \\0 \\uD800"\n---\nx', 'two lines \uFFFD'],
  ])('finds the title of %j', (source, title) => {
    expect(parse('folder/a.md', source)?.title).toBe(title)
  })

  it.each(['[', '*', '_a*', '![', '`', '\\``', '<', '&', '~~a ', '[a](', '] ['])(
    'reads a heading that repeats %j only up to the length of a title',
    (unit) => {
      const document = parse('a.md', `# Title ${unit.repeat(1_000_000 / unit.length)}\n\nThe text.`)
      expect(document?.title).toMatch(/^Title/)
      expect(document?.title.length).toBeLessThanOrEqual(300)
      expect(document?.text).toMatch(/The text\.$/)
    },
  )

  it.each(['> '.repeat(100_000), '- '.repeat(100_000), '    '.repeat(100_000)])(
    'reads a document that is nested too deep as text (%#)',
    (nesting) => {
      const text = `${nesting}deep\n\n# Title`
      expect(parse('a.md', text)).toMatchObject({ text: text.trim() })
    },
  )

  it('reads HTML without markup, scripts and URLs of links, and keeps the case of headings', () => {
    const document = parse(
      'a.html',
      `<html><head><title> A  page </title><link rel="canonical" href="https://example.com/page">
       <meta property="article:published_time" content="2022-03-04T05:06:07Z"></head>
       <body><svg><title>icon</title></svg><nav>menu</nav><h1>Heading</h1><p>Some <a href="https://x.example">linked</a> text &amp; more.</p>
       <script>no()</script></body></html>`,
    )
    expect(document).toEqual({
      url: 'https://example.com/page',
      kind: 'page',
      title: 'A page',
      publishDate: '2022-03-04',
      text: 'Heading\n\nSome linked text & more.',
    })
  })

  it('reads HTML that is nested too deep only up to the maximum depth', () => {
    // 2 MB: far too much for quadratic time in the depth.
    const source = `<title>Deep</title><p>top</p>${'<div>'.repeat(400_000)}deep`
    expect(parse('a.html', source)).toMatchObject({ title: 'Deep', text: 'Deep\n\ntop' })
  })

  it('reads HTML with many tags completely if they are not nested', () => {
    expect(parse('a.html', `${'<div><br>x</div>'.repeat(1_000)}<p>end`)?.text).toMatch(/end$/)
  })

  it.each([
    ['example.edu/papers/a b.md', 'https://example.edu/papers/a%20b.md'],
    ['v1.2/a.md', 'file:///docs/v1.2/a.md'],
    ['plain/a.md', 'file:///docs/plain/a.md'],
    ['example.edu.md', 'file:///docs/example.edu.md'],
  ])('derives the URL of %s', (relative, url) => {
    expect(parse(relative, 'text')?.url).toBe(url)
  })

  it('does not mistake a package for a domain', () => {
    expect(parse('socket.io/README.md', 'text', '/x/node_modules')?.url).toBe(
      'file:///x/node_modules/socket.io/README.md',
    )
  })

  it.each(['javascript:alert(1)', 'file:///etc/passwd', 'not a url', '/relative'])(
    'ignores the stated URL %s',
    (url) => {
      expect(parse('a.md', `---\nurl: "${url}"\n---\nx`)?.url).toBe('file:///docs/a.md')
    },
  )

  it.each([
    ['2023-02-30', '2024-02-29'],
    ['May 3, 2021', '2021-05-03'],
    ['soon', '2024-02-29'],
  ])('reads the date %s as %s, with the day of the file as the default', (date, expected) => {
    expect(parse('a.md', `---\ndate: ${date}\n---\nx`)?.publishDate).toBe(expected)
  })

  it.each([
    ['binary', Buffer.from([0x50, 0x4b, 0, 1])],
    ['not UTF-8', Buffer.from([0xff, 0xfe, 0x41])],
    ['empty', Buffer.from(' \n\n')],
  ])('skips a file that is %s', (_, bytes) => {
    expect(parse('a.txt', bytes)).toBeUndefined()
  })

  it('strips a byte order mark', () => {
    expect(parse('a.md', '\uFEFF# Title')).toMatchObject({ title: 'Title', text: '# Title' })
  })
})

// The words of a text, in every script, and the stretches that the server's alignments count.
import { tag } from "./languages.js";

// The blanks of the server (Python), which are not those of JavaScript.
const BLANK = "\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
const WORD = new RegExp(`[^${BLANK}]+`, "g"), LEAD = new RegExp(`^[${BLANK}]*`);
const SCRIPTS = ["Han", "Hira", "Kana", "Thai", "Laoo", "Khmr", "Mymr", "Tibt"];
const WITHOUT_BLANKS = new RegExp(`[${SCRIPTS.map((name) => `\\p{scx=${name}}`).join("")}]`, "u");
const CHARACTER = /[^\p{M}]\p{M}*/gu;

/** The blanks at the beginning of a line. */
export const leadOf = (line) => line.match(LEAD)[0];

/** The numbers, from 1, of the lines that are not blank; only these have details in an answer. */
export function linesWithText(text) {
  const numbers = [];
  for (const [index, line] of text.split("\n").entries()) {
    if (leadOf(line).length < line.length) numbers.push(index + 1);
  }
  return numbers;
}

/**
 * The stretches [begin, end) of a line that an alignment counts. The server counts code points;
 * without such `words`, the stretches are what is between blanks.
 */
export function spansIn(line, words) {
  if (!words) return piecesOf(line).map(({ begin, end }) => [begin, end]);
  const offsets = [];
  let at = 0;
  for (const character of line) {
    offsets.push(at);
    at += character.length;
  }
  offsets.push(at);
  return words.map(([begin, end]) => [offsets[begin], offsets[end]]);
}

/** The numbers of the spans that share characters with the stretch from `begin` to `end`. */
export function touching(spans, begin, end) {
  const numbers = new Set();
  for (const [number, [first, last]] of spans.entries()) {
    if (first < end && last > begin) numbers.add(number);
  }
  return numbers;
}

/** The words and signs of a text without blanks, as { segment, index, isWordLike }. */
function segmentsOf(text, language) {
  if (Intl.Segmenter) {
    const segmenter = new Intl.Segmenter(tag(language) || undefined, { granularity: "word" });
    return segmenter.segment(text);
  }
  // Without a dictionary, each character is a word.
  const isWordLike = (segment) => /[\p{L}\p{N}]/u.test(segment);
  const characters = [...text.matchAll(CHARACTER)];
  return characters.map(({ 0: segment, index }) => ({ segment, index, isWordLike: isWordLike(segment) }));
}

/** What is between blanks in a text, as { text, begin, end }. */
function piecesOf(text) {
  const matches = [...text.matchAll(WORD)];
  return matches.map(({ 0: word, index }) => ({ text: word, begin: index, end: index + word.length }));
}

/**
 * The words of a text in a language, as { text, begin, end }: what is between blanks, or a part of it
 * in scripts without blanks between words.
 */
export function wordsIn(text, language) {
  const pieces = piecesOf(text);
  if (!WITHOUT_BLANKS.test(text)) return pieces;
  return pieces.flatMap((piece) => {
    const words = [];
    for (const { segment, index, isWordLike } of segmentsOf(piece.text, language)) {
      const begin = piece.begin + index, end = begin + segment.length, last = words.at(-1);
      // Punctuation belongs to the word before it, or to the first word.
      if (last && (!isWordLike || !last.isWordLike)) {
        const isWord = last.isWordLike || isWordLike;
        Object.assign(last, { text: last.text + segment, end, isWordLike: isWord });
      } else words.push({ text: segment, begin, end, isWordLike });
    }
    return words;
  });
}

/** The words of a text that another text lacks, or has in another place (longest common subsequence). */
export function differences(words, others) {
  // lengths[i][j] is that of the longest common subsequence of the words from i and the other words from j.
  const lengths = Array.from({ length: words.length + 1 }, () => new Uint16Array(others.length + 1));
  for (let i = words.length - 1; i >= 0; i -= 1) {
    for (let j = others.length - 1; j >= 0; j -= 1) {
      const isSame = words[i].text === others[j].text;
      lengths[i][j] = isSame ? lengths[i + 1][j + 1] + 1 : Math.max(lengths[i + 1][j], lengths[i][j + 1]);
    }
  }
  const different = [];
  let i = 0, j = 0;
  while (i < words.length) {
    if (j < others.length && words[i].text === others[j].text) { i += 1; j += 1; }
    else if (j < others.length && lengths[i][j + 1] >= lengths[i + 1][j]) j += 1;
    else { different.push(words[i]); i += 1; }
  }
  return different;
}

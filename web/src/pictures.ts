// The core's pictures, inserted. Marks that stand for a number show it on hover and open its derivation; by keyboard a
// picture is one stop, arrows go from mark to mark.
import { fill, h } from "./dom";
import type { Picture } from "./types";

// Widths that a picture can be asked for: as wide as its column, to 20 px, so that few are drawn anew.
export function pictureWidth(column: number): number {
  return Math.max(280, Math.min(760, Math.floor(column / 20) * 20));
}

function tip(): HTMLElement {
  const found = document.getElementById("tip");
  if (found) return found;
  const made = h("div", { id: "tip", class: "tip", "aria-hidden": "true", hidden: true });
  document.body.append(made);
  return made;
}

function showTip(mark: Element): void {
  const text = mark.getAttribute("aria-label");
  if (!text) return;
  const box = mark.getBoundingClientRect(),
    label = tip();
  label.textContent = text;
  label.hidden = false;
  const left = Math.min(
    Math.max(8, box.left + box.width / 2 - label.offsetWidth / 2),
    window.innerWidth - label.offsetWidth - 8,
  );
  label.style.left = `${left + window.scrollX}px`;
  label.style.top = `${box.top + window.scrollY - label.offsetHeight - 6}px`;
}

function prepare(mark: SVGElement, first: boolean, select: (term: string) => void): void {
  const title = mark.querySelector("title");
  mark.setAttribute("aria-label", title?.textContent ?? mark.dataset.term ?? "");
  title?.remove(); // the browser's own tip would double ours
  mark.setAttribute("role", "button");
  mark.setAttribute("tabindex", first ? "0" : "-1");
  mark.addEventListener("mouseenter", () => showTip(mark));
  mark.addEventListener("mouseleave", () => {
    tip().hidden = true;
  });
  mark.addEventListener("focus", () => showTip(mark));
  mark.addEventListener("blur", () => {
    tip().hidden = true;
  });
  mark.addEventListener("click", () => select(mark.dataset.term ?? ""));
}

function keys(svg: SVGElement, marks: SVGElement[], select: (term: string) => void): void {
  svg.addEventListener("keydown", (event) => {
    const at = marks.indexOf(event.target as SVGElement);
    if (at < 0) return;
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      select(marks[at]!.dataset.term ?? "");
      return;
    }
    const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    const to = marks[(at + by + marks.length) % marks.length]!;
    marks[at]!.setAttribute("tabindex", "-1");
    to.setAttribute("tabindex", "0");
    to.focus();
  });
}

export function picture(p: Picture, select: (term: string) => void): HTMLElement {
  const holder = h("figure", { class: "picture", "data-picture": p.name });
  holder.innerHTML = p.svg; // the core escapes all text
  const svg = holder.querySelector("svg")!;
  svg.removeAttribute("id");
  svg.setAttribute("aria-label", p.title);
  const marks = [...svg.querySelectorAll<SVGElement>("[data-term]")];
  svg.setAttribute("role", marks.length ? "group" : "img");
  svg.querySelector(":scope > title")?.remove();
  svg.querySelector(":scope > rect")?.remove(); // the white ground of a file of its own
  marks.forEach((mark, i) => prepare(mark, i === 0, select));
  keys(svg, marks, select);
  return holder;
}

export function place(pictures: Picture[], select: (term: string) => void): void {
  for (const holder of document.querySelectorAll<HTMLElement>("[data-holds]")) {
    const found = pictures.find((p) => p.name === holder.dataset.holds);
    if (found) fill(holder, picture(found, select));
    else holder.replaceChildren();
    holder
      .closest<HTMLElement>("[data-optional]")
      ?.toggleAttribute("hidden", !found && holder.hasAttribute("data-needed"));
  }
}
export const hole = (name: string, needed = false): HTMLElement =>
  h("div", { "data-holds": name, "data-needed": needed });

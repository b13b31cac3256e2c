// What is moved in a drawing itself, by finger and mouse.

/** Call with the place in the drawing wherever a finger or the mouse is pressed on it, and with whether it begins. */
export function dragged(drawing, part, move) {
  const at = (event) => {
    const place = new DOMPoint(event.clientX, event.clientY).matrixTransform(drawing.getScreenCTM().inverse());
    move(place.x, place.y, event.type === "pointerdown");
  };
  // A finger that begins on it does not move the page: for a part of a drawing `touch-action` is not enough.
  part.style.touchAction = "none";
  part.addEventListener("touchstart", (event) => event.preventDefault(), { passive: false });
  part.addEventListener("pointerdown", (event) => {
    event.preventDefault();
    part.setPointerCapture(event.pointerId);
    at(event);
  });
  part.addEventListener("pointermove", (event) => { if (part.hasPointerCapture(event.pointerId)) at(event); });
}

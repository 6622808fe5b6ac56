"""The page: pictures, names and buttons for a teacher."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from avalanche_f2ocl.app.teacher import Answer, Teacher

if TYPE_CHECKING:
    from gradio import Blocks

NONE_OF_THESE = "none of these"


def make_page(teacher: Teacher) -> "Blocks":
    """Makes a Gradio page for one teacher, which all visitors share.

    Raises:
        ImportError: Gradio is not installed.
    """
    import gradio as gr

    with gr.Blocks(title="Teach a model", analytics_enabled=False, delete_cache=(600, 600)) as page:
        gr.Markdown(
            f"## Teach a model\nDrop pictures, name what they show, and it knows them. File: `{teacher.path.name}`"
        )
        with gr.Row():
            with gr.Column(scale=3):
                pictures = gr.Gallery(
                    label="Pictures", type="filepath", interactive=True, columns=6, height=300, elem_id="pictures",
                    sources=["upload", "webcam", "clipboard"],
                )  # fmt: skip
                with gr.Row():
                    name = gr.Dropdown(
                        label="They show", allow_custom_value=True, elem_id="name",
                        info="A new class or a known one. What was taught under another name is corrected.",
                    )  # fmt: skip
                    teach = gr.Button("Teach", variant="primary", elem_id="teach")
                answers = gr.Dataframe(
                    label="What the model takes them for", headers=["picture", "class", "next likeliest"],
                    interactive=False, elem_id="answers",
                )  # fmt: skip
                reject = gr.Slider(
                    0.01, 0.5, 0.05, step=0.01, elem_id="reject",
                    label=f"Known pictures that may be lost to “{NONE_OF_THESE}”, as a share",
                    info="The higher, the fewer strange pictures pass for known. Told from twenty or so pictures on.",
                )  # fmt: skip
            with gr.Column(scale=2):
                message = gr.Textbox(label="Done", interactive=False, elem_id="message")
                counts = gr.Dataframe(
                    label="Classes", headers=["class", "pictures"], interactive=False, elem_id="counts"
                )
                chosen = gr.Dropdown(label="Class", elem_id="chosen")
                with gr.Row():
                    new_name = gr.Textbox(label="New name", elem_id="new-name")
                    rename = gr.Button("Rename", elem_id="rename")
                    forget = gr.Button("Forget", variant="stop", elem_id="forget")
                with gr.Row():
                    undo = gr.Button("Undo", elem_id="undo")
                    save = gr.Button("Save", elem_id="save")
                    download = gr.DownloadButton("Download", elem_id="download", interactive=False)

        shown = [message, answers, counts, name, chosen, undo, save]

        def then(act: Callable[..., str]) -> Callable[..., list[Any]]:
            """The function of an event: it acts and shows what has changed, or shows the error."""

            def event(files: Any, share: float, *given: Any) -> list[Any]:
                try:
                    told = act([file for file, _ in files or []], *given)
                except (KeyError, OSError, RuntimeError, ValueError) as error:
                    raise gr.Error(str(error), duration=10, print_exception=False) from error
                return [told, *_now(teacher, files, share)]

            return event

        for button, act, given in (
            (teach.click, lambda files, name: teacher.teach(files, name or ""), [name]),
            (rename.click, lambda files, old, new: teacher.rename(old or "", new), [chosen, new_name]),
            (forget.click, lambda files, name: teacher.forget(name or ""), [chosen]),
            (undo.click, lambda files: teacher.undo(), []),
            (pictures.change, lambda files: "", []),
            (reject.release, lambda files: "", []),
            (page.load, lambda files: "", []),
        ):
            button(then(act), [pictures, reject, *given], shown)
        saved = save.click(then(lambda files: teacher.save()), [pictures, reject], shown)
        saved.success(lambda: gr.update(value=str(teacher.path), interactive=True), None, download)
    return page


def _now(teacher: Teacher, files: Any, reject: float) -> list[Any]:
    """The contents of the page: answers, counts, the choices of both lists, and the state of the buttons."""
    from gradio import update

    counts = teacher.counts
    given = teacher.ask([file for file, _ in files or []], reject) if counts else []
    save = {"value": "Save", "variant": "secondary"} if teacher.saved else {"value": "Save now", "variant": "primary"}
    return [
        [[number, *_row(answer)] for number, answer in enumerate(given, 1)],
        [list(count) for count in counts.items()],
        update(choices=list(counts)),
        update(choices=list(counts), value=next(reversed(counts), None)),
        update(interactive=teacher.can_undo),
        update(**save),
    ]


def _row(answer: Answer) -> list[str]:
    shown = [f"{name} {100 * share:.0f} %" for name, share in answer.classes]
    return [shown[0], ", ".join(shown[1:])] if answer.known is not False else [NONE_OF_THESE, ", ".join(shown)]
